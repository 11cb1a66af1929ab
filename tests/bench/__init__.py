"""What cdi-runc costs (C12): ``sudo python3 -m tests.bench`` from the top of the checkout."""
