"""Markov chains over concept graphs: `starts` and `state` (where they are), `gibbs` (their steps), `path_sampler`."""
