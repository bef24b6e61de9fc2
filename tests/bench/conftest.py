"""Property tests here have no deadline: the machine they run on may be busy with other tests."""

from hypothesis import settings

settings.register_profile("spectune", deadline=None)
settings.load_profile("spectune")
