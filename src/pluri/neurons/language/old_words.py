"""Words of GENESIS 2 scripts, and what is written here instead: such a script is refused before anything of it runs."""

from __future__ import annotations

_WIDGETS = "write form, dialog, toggle, button or graph with -options"
OLD_WORDS = {
    "setfield": "write set PATH FIELD VALUE",
    "getfield": "write getfield(path, field) in an expression",
    "showfield": "write show PATH",
    "addmsg": "write link SRC to DST (no delay) or connect SRC to DST -delay MS -weight W",
    "deletemsg": "delete one of the two elements",
    "showmsg": "write show PATH",
    "pushe": "write ce PATH",
    "pope": "write ce PATH",
    "le": "write ls",
    "pwe": "write ls, which begins with the current element",
    "useclock": "write set PATH clock NUMBER",
    "setmethod": "write method NAME",
    "readcell": "read the morphology in Python and hand it to Simulation.create",
    "createmap": "write copy A to B -n N",
    "planarconnect": "write connect in a for loop",
    "volumeconnect": "write connect in a for loop",
    "addfield": "register an element class of your own in Python",
    "tabchannel": "write create channel PATH -option VALUE",
    "foreach": "write for NAME = START to STOP",
    "int": "write name = value: variables are not declared",
    "float": "write name = value: variables are not declared",
    "str": "write name = value: variables are not declared",
    "extern": "functions of included files are known",
    "return": "functions have no value: set a field instead",
    "stop": "write quit",
    "exit": "write quit",
    "simobjdump": "write save FILE.npz",
    "simdump": "write save FILE.npz",
    "randseed": "write seed NUMBER",
    "{": "blocks begin after their first line and end with end",
    "}": "blocks end with end",
    "/*": "comments begin with two slashes, and go to the end of the line",
    **dict.fromkeys(
        ("xform", "xdialog", "xtoggle", "xbutton", "xgraph", "xlabel", "xcell", "xview", "xshow"), _WIDGETS
    ),
    **dict.fromkeys(("xstartup", "xhide", "xshape", "xdraw", "xpix", "xtext", "xupdate"), _WIDGETS),
}


def advice_for(word: str) -> str | None:
    """What to write in place of an old word, if it is one.

    Examples
    --------
    >>> from pluri.neurons.language.old_words import advice_for
    >>> advice_for("setfield")
    'write set PATH FIELD VALUE'
    """
    for start in ("/*", "{", "}"):
        if word.startswith(start):
            return OLD_WORDS[start]
    return OLD_WORDS.get(word)
