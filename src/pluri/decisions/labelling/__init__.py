"""Labelling by hand: what is shown next, what was answered, and a model that learns meanwhile.

`journal` is the file of answers, `pool` the items and the numbers by which they are compared, `session` the two
together with a model in the background. The page is in `pluri.report.labelling`, the command is ``pluri label``.
"""
