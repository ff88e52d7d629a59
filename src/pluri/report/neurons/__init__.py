"""The page about a simulation of neurons: served beside one that runs, or written as a film that replays."""
