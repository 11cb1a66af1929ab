"""Changes to JSON that leave it JSON, so that a fuzzer comes behind the parser."""

import copy
import json
import random

ODD = (
    *(None, True, False, 0, -1, 1, 44, 1 << 31, 1 << 63, 1 << 64, 1.5, 1e300, "", "x", "/", [], {}),
    *(
        "\0",
        "\ud800",
        "\n",
        "a\u2028",
        "/dev/null",
        "/../..",
        "a" * 300,
        [[]],
        [None],
        [{}],
        {"": 0},
    ),
)
BRACKETS = "[{"
SPELLINGS = (b"1e3", b"-0", b"1.50", b"1E400", b"NaN", b"1" * 5000, b'"\\u0041"', b'"\xff"')


def mutate(data, longest, seed, words):
    """Return *data*, a JSON text or lines of them, with one value changed; None if it is none."""
    chance = random.Random(seed)
    lines = data.split(b"\n")
    number = chance.randrange(len(lines)) if data.count(b"\n{") else None
    text = data if number is None else lines[number]
    try:
        changed = _changed(json.loads(text), chance, words)
    except (ValueError, RecursionError):
        return None
    if number is None:
        lines = [changed]
    else:
        lines[number] = changed
    made = b"\n".join(lines)
    return made if len(made) <= longest else None


def _changed(value, chance, words):
    """Return the text of *value* with one to three changes."""
    top = [value]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(_places(top))
        parent, key = chance.choice(places)
        other, other_key = chance.choice(places)
        change = chance.randrange(7)
        if change == 0:
            parent[key] = copy.deepcopy(chance.choice(ODD))
        elif change == 1:
            parent[key] = copy.deepcopy(other[other_key])
        elif change == 2 and parent is not top:
            del parent[key]
        elif change == 3 and isinstance(parent, list) and parent is not top:
            parent.insert(key, copy.deepcopy(parent[key]))
        elif change == 4 and isinstance(parent, dict):
            parent[chance.choice(words)] = parent.pop(key)
        elif change == 5:
            parent[key] = _nested(parent[key], chance)
        elif isinstance(parent[key], str):
            at = chance.randrange(len(parent[key]) + 1)
            parent[key] = parent[key][:at] + chance.choice(words) + parent[key][at:]
        else:
            parent[key] = chance.choice(words)
    separators = chance.choice(((",", ":"), (", ", ": ")))
    indent = chance.choice((None, None, None, 2, "\t"))
    text = json.dumps(
        top[0], separators=separators, indent=indent, ensure_ascii=chance.random() < 1
    )
    made = text.encode()
    if chance.random() < 0.1 and b":1" in made:
        made = made.replace(b":1", b":" + chance.choice(SPELLINGS), 1)
    return made


def _nested(value, chance):
    for _ in range(chance.choice((1, 2, 50, 300))):
        value = [value] if chance.choice(BRACKETS) == "[" else {"a": value}
    return value


def _places(top):
    """Yield each container below *top*, with each of its keys."""
    waiting = [top]
    while waiting:
        one = waiting.pop()
        for key, value in enumerate(one) if isinstance(one, list) else one.items():
            yield one, key
            if isinstance(value, (dict, list)):
                waiting.append(value)
