"""The commands: how each is written, and the method of `Simulation` that does the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from pluri.neurons.language.evaluation import as_text
from pluri.neurons.language.given import Given
from pluri.neurons.language.nodes import Command, Word
from pluri.neurons.language.places import ScriptError, nearest, shown

if TYPE_CHECKING:
    from pluri.neurons.tree.element import Element

MANY = 1000


class CommandForm(NamedTuple):
    """How a command is written: usage, numbers of arguments, names of options (None for those of a class)."""

    usage: str
    twin: str
    least: int
    most: int
    run: Callable[[Given], object]
    options: tuple[str, ...] | None = ()
    joined: bool = False  # the word `to` stands between its two arguments

    def checked(self, command: Command) -> Command:
        """The command without its `to`, or what is wrong with it."""
        arguments = command.arguments
        if self.joined:
            if len(arguments) != 3 or arguments[1].literal != "to" or arguments[1].quoted:
                place = arguments[1].place if len(arguments) > 1 else command.place
                word = (arguments[1].literal or "") if len(arguments) > 1 else command.name
                raise ScriptError(f"{self.usage} must be written so", place, word)
            arguments = (arguments[0], arguments[2])
        if not self.least <= len(arguments) <= self.most:
            place = arguments[self.most].place if len(arguments) > self.most else command.place
            raise ScriptError(
                f"{self.usage} must be written so, got {len(arguments)} argument{'s' * (len(arguments) != 1)}",
                place,
                command.name,
            )
        seen: set[str] = set()
        for name, _, place in command.options:
            if self.options is not None and name not in self.options:
                told = (
                    f"its options are {', '.join('-' + one for one in self.options)}" if self.options else "it has none"
                )
                suggestion = nearest(name, self.options)
                raise ScriptError(
                    f"{command.name} has no option {shown('-' + name)}: {told}",
                    place,
                    "-" + name,
                    suggestion and "-" + suggestion,
                )
            if name in seen:
                raise ScriptError(f"option -{name} must be given once", place, "-" + name)
            seen.add(name)
        if command.name == "create":
            _check_class(arguments[0], command)
        return Command(command.name, arguments, command.options, command.place)


def _check_class(word: Word, command: Command) -> None:
    """Refuse a class of elements, or a field of it, that does not exist."""
    name = word.literal
    if name is None:
        return
    classes = element_classes()
    if name not in classes:
        raise ScriptError(f"unknown class of elements {shown(name)}", word.place, name, nearest(name, classes))
    fields = classes[name].declared()
    for option, _, place in command.options:
        if option not in fields:
            found = nearest(option, fields)
            raise ScriptError(f"{name} has no field {shown(option)}", place, "-" + option, found and "-" + found)


def element_classes() -> dict[str, type[Element]]:
    """All classes of elements by name, those registered by the user among them."""
    from pluri.neurons.tree.element import REGISTER, class_named

    class_named("group")  # has the library register its own
    return REGISTER


def _create(given: Given) -> None:
    given.interpreter.count_elements(1)
    kind = element_classes().get(given.text(0))
    fields = {name: _fitting(kind, name, value) for name, value in given.options().items()}
    given.simulation.create(given.text(0), given.text(1), **fields)


def _set(given: Given) -> None:
    path, name = given.text(0), given.text(1)
    found = given.simulation.find(path)
    given.simulation.set(path, name, _fitting(type(found[0]) if found else None, name, given.value(2)))


def _fitting(kind: type[Element] | None, name: str, value: float | str) -> float | str:
    """A number as text if the field is one, as titles are."""
    declared = kind.declared().get(name) if kind is not None else None
    return as_text(value) if declared is not None and isinstance(declared.default, str) else value


def _connect(given: Given) -> None:
    exact = bool(given.option_number("exact_delay", 0.0))
    settings = {"delay": given.option_number("delay", 0.0), "weight": given.option_number("weight", 1.0)}
    given.simulation.connect(given.text(0), given.text(1), exact_delay=exact, **settings)


def _copy(given: Given) -> None:
    n = given.option_whole("n") if given.has("n") else None
    source = given.text(0)
    subtree = len(given.simulation.find(f"{source.rstrip('/')}/**")) + 1
    given.interpreter.count_elements(subtree * max(1 if n is None else n, 1))
    given.simulation.copy(source, given.text(1), n=n)


def _call(given: Given) -> None:
    arguments = [given.value(place) for place in range(1, len(given))]
    given.interpreter.call(given.text(0), arguments, given.command.arguments[0].place)


def _step(given: Given) -> None:
    if given.has("time") and len(given):
        raise ScriptError("step N or step -time T must be written so, not both", given.command.place, "step")
    if given.has("time"):
        given.interpreter.run(given.option_number("time", 0.0))
    else:
        given.interpreter.step(given.whole(0) if len(given) else 1)


def _check(given: Given) -> None:
    problems = given.simulation.check()
    for problem in problems:
        given.interpreter.say(problem)
    if not problems:
        given.interpreter.say("check: nothing is wrong")


def _ls(given: Given) -> None:
    given.interpreter.say(given.simulation.list_elements(given.text(0) if len(given) else "."))


def _show(given: Given) -> None:
    given.interpreter.say(given.simulation.describe(given.text(0)))


def _echo(given: Given) -> None:
    # Twelve digits are read more easily than what rounding leaves after the sixteenth: 0.15, not 0.15000000000000002.
    words = [given.command.arguments[place].literal or given.value(place) for place in range(len(given))]
    given.interpreter.say(" ".join(one if isinstance(one, str) else as_text(float(f"{one:.12g}")) for one in words))


def _widget(given: Given) -> None:
    settings: dict[str, float | str] = {}
    for name, value in given.options().items():
        if name in ("low", "high"):
            settings[name] = given.option_number(name, 0.0)
        else:
            settings[name] = value if name == "value" else as_text(value)
    make = getattr(given.simulation, given.command.name)
    make(*(given.text(place) for place in range(len(given))), **settings)


def _help(given: Given) -> None:
    if not len(given):
        given.interpreter.say("\n".join(form.usage for form in COMMANDS.values()))
        return
    name = given.text(0)
    if name not in COMMANDS:
        raise ScriptError(
            f"unknown command {shown(name)}", given.command.arguments[0].place, name, nearest(name, COMMANDS)
        )
    given.interpreter.say(f"{COMMANDS[name].usage}\nin Python: {COMMANDS[name].twin}")


_WIDGET_OPTIONS = ("form", "label", "value", "command", "unit")
COMMANDS = {
    "create": CommandForm(
        "create CLASS PATH [-FIELD VALUE ...]", "create(class_name, path, **fields)", 2, 2, _create, None
    ),
    "link": CommandForm(
        "link SRC to DST", "link(source, destination)", 2, 2,
        lambda given: given.simulation.link(given.text(0), given.text(1)), joined=True,
    ),
    "connect": CommandForm(
        "connect SRC to DST [-delay MS] [-weight W] [-exact_delay 1]", "connect(source, destination, delay, weight)",
        2, 2, _connect, ("delay", "weight", "exact_delay"), joined=True,
    ),
    "set": CommandForm(
        "set PATH FIELD VALUE", "set(path, field, value)", 3, 3, _set
    ),
    "copy": CommandForm("copy A to B [-n N]", "copy(source, destination, n=None)", 2, 2, _copy, ("n",), joined=True),
    "move": CommandForm(
        "move A to B", "move(source, destination)", 2, 2,
        lambda given: given.simulation.move(given.text(0), given.text(1)), joined=True,
    ),
    "delete": CommandForm("delete PATH", "delete(path)", 1, 1, lambda given: given.simulation.delete(given.text(0))),
    "ce": CommandForm(
        "ce PATH", "change_element(path)", 1, 1, lambda given: given.simulation.change_element(given.text(0))
    ),
    "ls": CommandForm("ls [PATH]", "list_elements(path)", 0, 1, _ls),
    "show": CommandForm("show PATH", "describe(path)", 1, 1, _show),
    "record": CommandForm(
        "record PATH FIELD", "record(pattern, field)", 2, 2,
        lambda given: given.simulation.record(given.text(0), given.text(1)),
    ),
    "graph": CommandForm(
        "graph PATH FIELD [-name NAME] [-title TEXT]", "graph(path, field, name=, title=)", 2, 2, _widget,
        ("name", "title"),
    ),
    "cell_view": CommandForm(
        "cell_view PATH [-field F] [-name NAME] [-title TEXT] [-low V] [-high V]", "cell_view(path)", 1, 1, _widget,
        ("field", "name", "title", "low", "high"),
    ),
    "network_view": CommandForm(
        "network_view PATTERN [-name NAME] [-title TEXT]", "network_view(pattern)", 1, 1, _widget,
        ("name", "title"),
    ),
    "form": CommandForm("form NAME [-title TEXT]", "form(name, title=)", 1, 1, _widget, ("title",)),
    "dialog": CommandForm(
        "dialog NAME [-form F] [-label TEXT] [-value V] [-unit U] [-command TEXT]", "dialog(name, ...)", 1, 1, _widget,
        _WIDGET_OPTIONS,
    ),
    "toggle": CommandForm(
        "toggle NAME [-form F] [-label TEXT] [-value 0|1] [-command TEXT]", "toggle(name, ...)", 1, 1, _widget,
        ("form", "label", "value", "command"),
    ),
    "button": CommandForm(
        "button NAME [-form F] [-label TEXT] [-command TEXT]", "button(name, ...)", 1, 1, _widget,
        ("form", "label", "command"),
    ),
    "setclock": CommandForm(
        "setclock INDEX MS", "set_clock(index, period)", 2, 2,
        lambda given: given.simulation.set_clock(given.whole(0), given.number(1)),
    ),
    "method": CommandForm(
        "method NAME", "Simulation(method=name)", 1, 1, lambda given: given.interpreter.set_method(given.text(0))
    ),
    "seed": CommandForm(
        "seed NUMBER", "Simulation(random_state=number)", 1, 1,
        lambda given: given.interpreter.seed(given.whole(0)),
    ),
    "reset": CommandForm("reset", "reset()", 0, 0, lambda given: given.simulation.reset()),
    "step": CommandForm("step N or step -time MS", "step(n_steps) or run(duration)", 0, 1, _step, ("time",)),
    "check": CommandForm("check", "check()", 0, 0, _check),
    "include": CommandForm("include FILE", "run_script(file)", 1, 1, lambda given: None),
    "call": CommandForm("call FUNCTION [ARGUMENT ...]", "a Python function", 1, MANY, _call),
    "save": CommandForm("save FILE.npz", "save(path)", 1, 1, lambda given: given.interpreter.save(given.text(0))),
    "restore": CommandForm(
        "restore FILE.npz", "Simulation.restore(path)", 1, 1, lambda given: given.interpreter.restore(given.text(0))
    ),
    "echo": CommandForm("echo [WORD ...]", "print(...)", 0, MANY, _echo),
    "help": CommandForm("help [COMMAND]", "help(Simulation)", 0, 1, _help),
    "quit": CommandForm("quit", "", 0, 0, lambda given: given.interpreter.leave()),
}  # fmt: skip
