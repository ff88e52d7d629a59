"""What all tests share."""

import signal

from hypothesis import settings

# A time limit for each example would fail on a busy machine, and says nothing about correctness.
settings.register_profile("pluri", deadline=None)
settings.load_profile("pluri")

# A run in the background may inherit that Ctrl-C is ignored; the tests of interruption need it heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
