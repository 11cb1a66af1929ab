"""The few messages of the Container Runtime Interface (runtime.v1) that a kubelet begins with.

Debian has neither crictl nor the interface's .proto file, so a message is a dict from field
numbers to values here: text, numbers, dicts for messages, lists for repeated fields.
"""

import grpc

SERVICE = "/runtime.v1.RuntimeService/"


def _varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode(message):
    """Return *message* as protobuf writes it."""
    out = b""
    for number, value in message.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, int):
                out += _varint(number << 3) + _varint(one)
                continue
            data = encode(one) if isinstance(one, dict) else one.encode()
            out += _varint(number << 3 | 2) + _varint(len(data)) + data
    return out


def decode(data):
    """Return the fields of a message: numbers, or bytes, which may be a message in turn."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        number, kind = divmod(varint(), 8)
        value = varint()
        if kind == 2:
            value, at = data[at : at + value], at + value
        found[number] = value
    return found


def pairs(mapping):
    """Return *mapping* as a map of protobuf."""
    return [{1: key, 2: value} for key, value in mapping.items()]


class Cri:
    """A client of the CRI at the socket of a containerd."""

    def __init__(self, socket):
        self.channel = grpc.insecure_channel(f"unix://{socket}")

    def __call__(self, method, message):
        """Call *method*; return the answer's fields."""
        call = self.channel.unary_unary(
            SERVICE + method, request_serializer=encode, response_deserializer=decode
        )
        return call(message, timeout=60)

    def run_pod(self, name, handler, directory):
        """Start a pod in the host's network, and return its id and its configuration."""
        host_network = {2: {1: {1: 2}}}  # NamespaceMode NODE
        config = {
            1: {1: name, 2: f"uid-{name}", 3: "default"},
            3: str(directory),
            8: host_network,
        }
        answer = self("RunPodSandbox", {1: config, 2: handler})
        return answer[1].decode(), config

    def run(self, pod, name, image, command, *, env=None, annotations=None):
        """Create and start a container in *pod*, and return its id."""
        pod_id, pod_config = pod
        config = {
            1: {1: name},
            2: {1: image},
            3: list(command),
            6: pairs(env or {}),
            10: pairs(annotations or {}),
            11: f"{name}.log",
            15: {2: {3: {1: 2}}},
        }
        made = self("CreateContainer", {1: pod_id, 2: config, 3: pod_config})[1].decode()
        self("StartContainer", {1: made})
        return made

    def exec(self, container, *command):
        """Return what a further process in *container* writes."""
        answer = self("ExecSync", {1: container, 2: list(command), 3: 20})
        return answer.get(1, b"").decode()

    def remove_pod(self, pod):
        """Stop and remove the pod with all its containers."""
        self("StopPodSandbox", {1: pod[0]})
        self("RemovePodSandbox", {1: pod[0]})

    def close(self):
        """Hang up."""
        self.channel.close()
