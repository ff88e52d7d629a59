"""Graphics as elements: forms, dialogs, toggles, buttons, graphs, and views of cells and networks, under ``/output``.

They hold what they show. Headless, that is all; `Graph.save` draws it with matplotlib; and the live page of
``pluri neurons --page`` shows it while it happens.
"""
