"""Scripts: blocks, functions, includes, and errors that say where, what, and what was meant."""

from __future__ import annotations

import pickle

import pytest

from pluri.neurons import Simulation, SimulationError
from pluri.neurons.language import Interpreter, Limits, ScriptError


def said_by(text, **settings):
    said = []
    Interpreter(Simulation(), output=said.append, **settings).run_text(text, "test.g")
    return said


def test_blocks_run_as_they_read():
    assert said_by("for i = 1 to 3\necho {i}\nend") == ["1", "2", "3"]
    assert said_by("for i = 3 to 1 step -1\necho {i}\nend") == ["3", "2", "1"]
    assert said_by("for i = 2 to 1\necho {i}\nend") == []
    assert said_by("for x = 0 to 1 step 0.1\nlast = x\nend\necho {round(last * 10)}") == ["10"]
    assert said_by("n = 0\nwhile n < 3\nn = n + 1\nend\necho {n}") == ["3"]
    assert said_by("if 1 < 2\necho yes\nelse\necho no\nend") == ["yes"]
    assert said_by("if 0\nif 1\necho a\nelse\necho b\nend\nelse\necho c\nend") == ["c"]
    assert said_by('echo a // echo b\necho "c // d" {1 + 1}\t// e') == ["a", "c // d 2"]
    assert said_by('echo "say \\"hi\\"\\n\\tthere\\\\"') == ['say "hi"\n\tthere\\']
    assert said_by("\ufeffecho first\r\n\r\n   \necho second\r") == ["first", "second"]
    assert said_by("echo {0.1 + 0.2} {1/3} {10^12} 007 {2}a\necho") == ["0.3 0.333333333333 1000000000000 007 2a", ""]
    assert said_by("echo before\nquit\necho after") == ["before"]


def test_functions_have_variables_of_their_own_and_see_those_of_the_script():
    text = """
        n = 5
        function change n m
            n = n + m + k
            echo inside {n}
        end
        k = 100
        call change 1 {n + 1}
        echo outside {n}
    """
    assert said_by(text) == ["inside 107", "outside 5"]
    recursive = "function down n\nif n > 0\necho {n}\ncall down {n - 1}\nend\nend\ncall down 3"
    assert said_by(recursive) == ["3", "2", "1"]


def test_what_goes_on_for_ever_is_ended():
    for text in ("while true\nend", "for i = 1 to 1e300\nend", "for i = 0 to 1 step 1e-300\nx = i\nend"):
        with pytest.raises(ScriptError, match="must end after 2000 lines"):
            said_by(text, limits=Limits(statements=2000))
    with pytest.raises(ScriptError, match="at most 40 deep"):
        said_by("function f\ncall f\nend\ncall f")
    nested = "function f n\n" + "if 1\n" * 15 + "call f {n + 1}\n" + "end\n" * 16 + "call f 0"
    with pytest.raises(ScriptError, match="deep"):
        said_by(nested)
    with pytest.raises(ScriptError, match="at most 100 elements"):
        said_by("create group /a\ncopy /a to /b -n 1000", limits=Limits(elements=100))
    with pytest.raises(ScriptError, match="at most 50 time steps"):
        said_by("create group /a\nstep 51", limits=Limits(steps=50))


@pytest.mark.parametrize(
    ("text", "line", "column", "word", "says"),
    [
        ("crate group /net", 1, 1, "crate", r"unknown command 'crate' \(did you mean create\?\)"),
        ("\n  creat group /net", 2, 3, "creat", "did you mean create"),
        ("create grup /net", 1, 8, "grup", r"unknown class of elements 'grup' \(did you mean group\?\)"),
        ("create passive_compartment /a -lenght 3", 1, 31, "-lenght", r"no field 'lenght' \(did you mean -length\?\)"),
        ("connect /a to /b -dealy 3", 1, 18, "-dealy", r"did you mean -delay\?"),
        ("create group /a -clock 0 -clock 1", 1, 26, "-clock", "must be given once"),
        ("connect /a to /b -delay", 1, 18, "-delay", "must have a value"),
        ("link /a /b", 1, 9, "/b", "link SRC to DST must be written so"),
        ("link /a", 1, 1, "link", "link SRC to DST must be written so"),
        ("create group", 1, 1, "create", "got 1 argument$"),
        ("reset now", 1, 7, "reset", "reset must be written so"),
        ("create group /a/b", 1, 14, "/a/b", "there is no element /a"),
        ("create group /a\ncreate group /a", 2, 14, "/a", "already exists"),
        ("create group /1a", 1, 14, "/1a", "1a"),
        ("set /a clock 1", 1, 5, "/a", "there is no element /a"),
        ("create group /a\nset /a clok 1", 2, 8, "clok", "clock"),
        ("create passive_compartment /a\nset /a length -3", 2, 8, "length", "length of /a must be"),
        ("step n", 1, 6, "n", "step must have a number, got 'n'$"),
        ("n = 3\nstep n", 2, 6, "n", r"write \{n\} for the value"),
        ("step 2.5", 1, 6, "", "whole number"),
        ("step -1", 1, 6, "", "whole number"),
        ("step 5 -time 3", 1, 1, "step", "not both"),
        ("if 1\necho a", 1, 1, "if", "must be closed by end"),
        ("for i = 1 to 3\nend\nend", 3, 1, "end", "before it"),
        ("else", 1, 1, "else", "before it"),
        ("while 1\nelse\nend", 2, 1, "else", "belong to an if"),
        ("if 1\nelse if 2\nend", 2, 6, "if", "else must stand alone: write the inner if on the next line"),
        ("for i = 1\nend", 1, 10, "", "'to' must come here, got the end of the line"),
        ("for (i = 0; i < 3; i++)", 1, 5, "(i", "for NAME = START to STOP"),
        ("for 3 = 1 to 2\nend", 1, 5, "3", "for NAME"),
        ("for i = 1 to 2 step 0\nend", 1, 1, "step", "must not be 0"),
        ("function f(a)\nend", 1, 10, "f(a)", "function NAME PARAMETERS"),
        ("function f a a\nend", 1, 1, "f", "different names"),
        ("if 1\nfunction f\nend\nend", 2, 1, "function", "outside of other blocks"),
        ("function f\nend\nfunction f\nend", 3, 1, "f", "is defined already at test.g, line 1"),
        ("function f\nend\nf", 3, 1, "f", "'f' is a function: write call f"),
        ("call g", 1, 6, "g", "unknown function 'g'"),
        ("function fire\nend\ncall fier", 3, 6, "fier", r"did you mean fire\?"),
        ("function f a\nend\ncall f", 3, 6, "f", "call f A must be written so, got 0 arguments"),
        ("end = 3", 1, 1, "end", "before it"),
        ("pi = 3", 1, 1, "pi", "is a word of the language"),
        ("sqrt = 3", 1, 1, "sqrt", "is a word of the language"),
        ('echo "abc', 1, 6, '"', "must end with"),
        ('echo "a"b', 1, 9, "b", "a blank must come"),
        ('echo "\\q"', 1, 7, "\\q", "got"),
        ("echo a}", 1, 7, "}", "'}' must have a '{'"),
        ("echo {1", 1, 8, "", "'}' must come here"),
        ("x = 1 2", 1, 7, "2", "nothing must come after"),
        ("x == 3", 1, 1, "x", "unknown command"),
        ("echo \0", 1, 6, "", "must be text"),
        ("echo " + "a" * 30000, 1, 1, "", "at most 20000 characters"),
        ("if 1\n" * 30 + "end\n" * 30, 21, 1, "", "at most 20 deep"),
        ("help me", 1, 6, "me", "unknown command 'me'"),
        ("save net", 1, 6, "net", "file of type .npz"),
        ("restore missing.npz", 1, 9, "missing.npz", "missing.npz"),
        ("method eulr", 1, 8, "eulr", "method must be"),
        ("graph /nothing Vm", 1, 7, "/nothing", "no element"),
        ("network_view /none*", 1, 14, "/none*", "no source of spikes"),
    ],
)
def test_errors_name_line_column_word_and_suggestion(text, line, column, word, says):
    with pytest.raises(ScriptError, match=says) as caught:
        said_by(text)
    error = caught.value
    assert str(error).startswith(f"test.g, line {line}, column {column}: ")
    assert (error.place.line, error.place.column) == (line, column)
    if word:
        assert error.word == word
    assert isinstance(error, SimulationError)
    assert "\n" not in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_nothing_runs_if_a_line_cannot_be_meant():
    said, sim = [], Simulation()
    with pytest.raises(ScriptError, match="line 3"):
        Interpreter(sim, output=said.append).run_text("echo first\ncreate group /net\nfrobnicate /net")
    assert said == []
    assert sim.find("/net") == []


GENESIS = """//genesis
float tmax = 0.5
include compartments
setclock 0 0.00005
function makecompartment(path, length)
    str path
    create compartment {path}
    setfield {path} Cm {{length}*0.01} Em -0.07
end
makecompartment /cell 3
addmsg /cell /axon INPUT Vm
"""


def test_old_scripts_are_refused_with_advice_before_anything_runs():
    sim = Simulation()
    with pytest.raises(ScriptError, match=r"line 2, column 1: 'float' is of GENESIS 2.*nothing was run"):
        Interpreter(sim).run_text(GENESIS)
    assert sim.find("/*") == []
    for word, advice in {
        "setfield /a Vm 3": "set PATH FIELD VALUE",
        "addmsg /a /b AXIAL Ra Vm": "link SRC to DST",
        "xform /f": "form, dialog",
        "pushe /a": "ce PATH",
        "/* comment */": "two slashes",
        "useclock /a 1": "set PATH clock",
        "}": "end",
    }.items():
        with pytest.raises(ScriptError, match=advice):
            Interpreter(sim).run_text(f"create group /a\n{word}")
    assert sim.find("/*") == []


def test_included_files_are_found_beside_the_file_that_includes_them(tmp_path):
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    (tmp_path / "main.g").write_text("include parts/cells.g\ncall make /a\ninclude parts/cells\ncall make /b\n")
    (tmp_path / "parts" / "cells.g").write_text("include deep/base.g\nfunction make path\ncall base {path}\nend\n")
    (tmp_path / "parts" / "deep" / "base.g").write_text("function base path\ncreate group {path}\nend\n")
    sim = Simulation()
    sim.run_script(tmp_path / "main.g")
    assert [one.path for one in sim.find("/*")] == ["/a", "/b"]


def test_errors_in_included_files_name_those_files_and_nothing_runs(tmp_path):
    (tmp_path / "main.g").write_text("create group /a\ninclude part.g\n")
    (tmp_path / "part.g").write_text("\n\ncreate grop /b\n")
    sim = Simulation()
    with pytest.raises(ScriptError, match=r"part.g, line 3, column 8: .*did you mean group"):
        sim.run_script(tmp_path / "main.g")
    assert sim.find("/*") == []
    (tmp_path / "part.g").write_text("include main.g\n")
    with pytest.raises(ScriptError, match="includes itself"):
        sim.run_script(tmp_path / "part.g")
    (tmp_path / "part.g").write_bytes(b"echo \xff\xfe")
    with pytest.raises(ScriptError, match=r"main\.g, line 2, column 9: a script must be text in UTF-8"):
        sim.run_script(tmp_path / "main.g")
    (tmp_path / "main.g").write_text("include nowhere.g\n")
    with pytest.raises(ScriptError, match=r"line 1, column 9: .*cannot be read"):
        sim.run_script(tmp_path / "main.g")
    with pytest.raises(ScriptError, match="cannot be read"):
        sim.run_script(tmp_path / "absent.g")
    with pytest.raises(ScriptError, match="cannot be read"):
        sim.run_script(tmp_path)
    with pytest.raises(ScriptError, match="without expressions"):
        said_by('f = "a.g"\ninclude {f}')
    for number in range(25):
        (tmp_path / f"chain{number}.g").write_text(f"include chain{number + 1}.g\ninclude chain{number + 1}.g\n")
    with pytest.raises(ScriptError, match="at most 20 files inside each other"):
        sim.run_script(tmp_path / "chain0.g")


def test_variables_and_functions_stay_from_one_text_to_the_next():
    said = []
    interpreter = Interpreter(Simulation(), output=said.append)
    interpreter.run_text("function double x\necho {2 * x}\nend\nn = 4")
    interpreter.run_text("call double {n}")
    with pytest.raises(ScriptError):
        interpreter.run_text("call dubble {n}")
    with pytest.raises(ScriptError):
        interpreter.run_text("call double oops")
    interpreter.run_text("n = n + 1\ncall double {n}")
    assert said == ["8", "10"]


def test_ls_show_and_help_tell_what_there_is():
    said = said_by(
        "create group /net\ncreate passive_compartment /net/a -length 30\nls\nls /net/a\nshow /net/a\nhelp set"
    )
    assert said[0] == "/\n  net/  (group)"
    assert said[1] == "/net/a\n  (nothing)"
    assert "length = 30 um" in said[2]
    assert said[3].startswith("set PATH FIELD VALUE\nin Python: set(path, field, value)")
