"""No deadline for drawn examples: the first one also pays for the lazy import of SciPy."""

from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
