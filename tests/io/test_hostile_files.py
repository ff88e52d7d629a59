"""Files that are not what they claim: refused in one sentence, and nothing in them runs."""

from __future__ import annotations

import importlib
import io
import json
import pickle
import subprocess
import sys
import textwrap
import warnings
import zipfile

import numpy as np
import pytest

from pluri.io import VersionWarning, load, read_info, save
from pluri.io.header import MEMBER, installed
from pluri.sequences import GaussianHMM


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, contents, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def altered(source, target, change):
    """A copy of a model file whose schema went through `change`."""
    contents = members(source)
    schema = json.loads(contents["schema.json"])
    contents["schema.json"] = json.dumps(change(schema) or schema)
    return write(target, contents)


@pytest.fixture(scope="module")
def gaussian():
    X = np.random.default_rng(3).normal(size=(60, 2))
    return GaussianHMM(2, n_iter=4, tol=-np.inf, random_state=0).fit(X)


@pytest.fixture(scope="module")
def good(tmp_path_factory, gaussian):
    path = tmp_path_factory.mktemp("good") / "model.skops"
    save(gaussian, path)
    return path


def node(loader, module, name, **more):
    return {"__loader__": loader, "__module__": module, "__class__": name, "__id__": 1} | more


def text(value):
    return node("JsonNode", "builtins", "str", content=json.dumps(value), is_json=True) | {"__id__": hash(str(value))}


def sequence(*items, loader="TupleNode", module="builtins", name="tuple"):
    return node(loader, module, name, content=list(items)) | {"__id__": hash(str(items))}


def mapping(**items):
    key = node("TypeNode", "builtins", "str") | {"__id__": 5}
    keys = sequence(*[key] * len(items), loader="ListNode", name="list")
    return node("DictNode", "builtins", "dict", content=items, key_types=keys) | {"__id__": hash(str(items))}


COMMAND = "touch canary"
HOSTILE = {
    "a function": (node("FunctionNode", "os", "system"), "os.system"),
    "a builtin": (node("TypeNode", "builtins", "eval"), "builtins.eval"),
    "a constructor call": (
        node("ConstructorFromReduceNode", "subprocess", "Popen", content=sequence(text(COMMAND.split()))),
        "subprocess.Popen",
    ),
    "a constructor of an allowed name": (
        node("ConstructorFromReduceNode", "pluri.priors.diversity", "Diversity", content=sequence(text(1.0))),
        "pluri.priors.diversity.Diversity",
    ),
    "a partial": (
        node(
            "PartialNode",
            "functools",
            "partial",
            content={
                "func": node("FunctionNode", "os", "system") | {"__id__": 2},
                "args": sequence(text(COMMAND)),
                "kwds": mapping(),
                "namespace": text(None),
            },
        ),
        "functools.partial, os.system",
    ),
    "a method caller": (
        node("OperatorFuncNode", "operator", "methodcaller", attrs=sequence(text("system"), text(COMMAND))),
        "operator.methodcaller",
    ),
    "an operator of another module": (
        node("OperatorFuncNode", "os", "system", attrs=sequence(text(COMMAND))),
        "os.system",
    ),
    "a method": (
        node(
            "MethodNode",
            "pluri.priors.diversity",
            "Diversity",
            content={"func": "log_density", "obj": node("ObjectNode", "pluri.priors.diversity", "Diversity")},
        ),
        "pluri.priors.diversity.Diversity",
    ),
    "a module that does harm when imported": (node("ObjectNode", "harm", "Harm"), "harm.Harm"),
    "a list of another type": (sequence(text(1), loader="ListNode", module="harm", name="Harm"), "harm.Harm"),
    "a dict of another type": (mapping() | {"__module__": "harm", "__class__": "Harm"}, "harm.Harm"),
    "a dict with a callable for keys": (
        mapping(a=text(1))
        | {"key_types": sequence(node("TypeNode", "builtins", "exec"), loader="ListNode", name="list")},
        "builtins.exec",
    ),
    "an array type that opens files": (
        node("NdArrayNode", "numpy", "memmap", type="numpy", file="x.npy"),
        "numpy.memmap",
    ),
    "an estimator that runs functions": (
        node("ObjectNode", "sklearn.preprocessing._function_transformer", "FunctionTransformer"),
        "sklearn.preprocessing._function_transformer.FunctionTransformer",
    ),
    "a function of numpy.random": (
        node(
            "RandomGeneratorNode",
            "numpy.random._generator",
            "Generator",
            content={"bit_generator": mapping(bit_generator=text("seed")), "seed_seq": mapping()},
        ),
        "numpy.random.seed",
    ),
    "a private class of pluri": (node("ObjectNode", "pluri.__main__", "main"), "pluri.__main__.main"),
    "a cached node": (node("CachedNode", "builtins", "str"), "builtins.str"),
    "an unknown loader": (node("NoSuchNode", "os", "system"), "os.system"),
}  # fmt: skip


def with_attribute(hostile):
    def change(schema):
        schema["content"]["content"]["means_"] = hostile

    return change


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("where", ["attribute", "root", "list"])
def test_types_off_the_list_are_named_and_refused(good, tmp_path, name, where):
    hostile, offending = HOSTILE[name]
    if where == "list":
        hostile = sequence(text(1), hostile, loader="ListNode", name="list")
    change = with_attribute(hostile) if where != "root" else lambda schema: hostile | {"protocol": schema["protocol"]}
    path = altered(good, tmp_path / "bad.skops", change)
    with pytest.raises(ValueError, match="path must name a file with types of pluri only") as caught:
        load(path)
    message = str(caught.value)
    assert all(f"{part}" in message for part in offending.split(", "))
    assert message.endswith(": nothing was loaded")
    assert message.count("\n") == 0


def test_nothing_in_a_hostile_file_runs(good, tmp_path):
    """Every audited event of the interpreter is watched while the files are refused, in a process of its own."""
    (tmp_path / "harm.py").write_text("open('canary', 'w').close()\nclass Harm(list): pass\n")
    files = []
    for number, (hostile, _) in enumerate(HOSTILE.values()):
        files.append(altered(good, tmp_path / f"{number}.skops", with_attribute(hostile)))
        root = tmp_path / f"{number}root.skops"
        files.append(altered(good, root, lambda schema, hostile=hostile: hostile | {"protocol": schema["protocol"]}))
    for number, content in enumerate(pickles(tmp_path)):
        (tmp_path / f"pickle{number}.skops").write_bytes(content)
        files.append(tmp_path / f"pickle{number}.skops")
    files.append(with_pickled_array(good, tmp_path / "array.skops"))
    program = textwrap.dedent(
        """
        import sys
        from pluri.io import load
        load(sys.argv[1]), load(sys.argv[1])  # all that is imported by a good file is imported now
        seen = []
        def watch(event, arguments):
            if event in ("exec", "import", "os.system", "pickle.find_class", "subprocess.Popen", "marshal.loads"):
                seen.append((event, str(arguments[:1])))
        sys.addaudithook(watch)
        for path in sys.argv[2:]:
            try:
                load(path)
            except ValueError:
                continue
            print("loaded", path)
        print(seen)
        """
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(good), *map(str, files)], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.stderr == ""
    assert result.stdout.strip() == "[]"
    assert not (tmp_path / "canary").exists()


class Bomb:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return open, (str(self.folder / "canary"), "w")


def pickles(folder):
    for protocol in (0, 2, pickle.HIGHEST_PROTOCOL):
        yield pickle.dumps(Bomb(folder), protocol=protocol)
    stream = io.BytesIO()
    np.savez(stream, model=np.array([Bomb(folder)], dtype=object))
    yield stream.getvalue()


def with_pickled_array(good, target):
    """The first array of a good file replaced by one of objects, which NumPy would unpickle."""
    contents = members(good)
    stream = io.BytesIO()
    np.save(stream, np.array([Bomb(target.parent)], dtype=object), allow_pickle=True)
    contents[next(name for name in contents if name.endswith(".npy"))] = stream.getvalue()
    return write(target, contents)


def test_pickles_and_pickled_arrays_are_refused(good, tmp_path):
    for content in pickles(tmp_path):
        (tmp_path / "model.skops").write_bytes(content)
        with pytest.raises(ValueError, match=r"path must name a model saved by pluri.io.save"):
            load(tmp_path / "model.skops")
    with pytest.raises(ValueError, match=r"its array '.*' is damaged"):
        load(with_pickled_array(good, tmp_path / "model.skops"))
    assert not (tmp_path / "canary").exists()


def npz():
    stream = io.BytesIO()
    np.savez(stream, X=np.zeros(3))
    return stream.getvalue()


@pytest.mark.parametrize(
    "content", [b"", b"n,x\n1,2\n", b"PK\x05\x06" + b"\0" * 18, npz(), b"\x93NUMPY\x01\x00", b"\0" * 5000]
)
def test_foreign_files_are_refused(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    for read in (load, read_info):
        with pytest.raises(ValueError, match=r"path must name a model saved by pluri.io.save, got '.*': it is "):
            read(tmp_path / "file")


def test_a_file_cut_short_anywhere_is_refused(good, tmp_path):
    content = good.read_bytes()
    for end in np.linspace(0, len(content) - 1, 40).astype(int):
        (tmp_path / "cut").write_bytes(content[:end])
        with pytest.raises(ValueError, match=r"path must name a model saved by pluri.io.save"):
            load(tmp_path / "cut")


def test_a_flipped_bit_is_refused_or_harmless(good, gaussian, tmp_path):
    content = bytearray(good.read_bytes())
    rng = np.random.default_rng(0)
    refused = 0
    for place in rng.choice(len(content), size=150, replace=False):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "flipped").write_bytes(damaged)
        try:
            model = load(tmp_path / "flipped")
        except ValueError:
            refused += 1
        else:
            np.testing.assert_array_equal(model.means_, gaussian.means_)  # a time stamp, say
    assert refused > 100


DAMAGE = {
    "no member": lambda contents: {name: item for name, item in contents.items() if name != MEMBER},
    "no schema": lambda contents: {name: item for name, item in contents.items() if name != "schema.json"},
    "no arrays": lambda contents: {name: item for name, item in contents.items() if name.endswith("json")},
    "header is a list": lambda contents: contents | {MEMBER: b"[]"},
    "header without a class": lambda contents: contents | {MEMBER: b'{"format": 1, "versions": {}, "notes": {}}'},
    "format is text": lambda contents: contents | {MEMBER: contents[MEMBER].replace(b": 1,", b': "1",')},
    "header of another class": lambda contents: contents | {MEMBER: contents[MEMBER].replace(b"Gaussian", b"Poisson")},
    "schema is text": lambda contents: contents | {"schema.json": b"text"},
    "schema is a list": lambda contents: contents | {"schema.json": b"[]"},
    "schema is empty": lambda contents: contents | {"schema.json": b"{}"},
    "schema is bottomless": lambda contents: contents | {"schema.json": b"[" * 100_000},
    "schema of odd names": lambda contents: contents
    | {"schema.json": b'{"__loader__": ["ObjectNode"], "__module__": 3, "__class__": null}'},
    "schema without protocol": lambda contents: contents
    | {"schema.json": contents["schema.json"].replace(b'"protocol"', b'"procotol"')},
    "schema of a future protocol": lambda contents: contents
    | {"schema.json": contents["schema.json"].replace(b'"protocol": ', b'"protocol": 99')},
    "numbers that are none": lambda contents: contents
    | {"schema.json": contents["schema.json"].replace(b'"content": "4"', b'"content": "os.system(1)"')},
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_parts_are_refused(good, tmp_path, name):
    path = write(tmp_path / "bad", DAMAGE[name](members(good)))
    with pytest.raises(ValueError, match=r"path must name a model saved by pluri.io.save"):
        load(path)


def test_an_object_inside_itself_is_refused(good, tmp_path):
    def change(schema):
        schema["content"]["content"]["means_"] = {key: schema[key] for key in ("__loader__", "__module__", "__class__")}
        schema["content"]["content"]["means_"] |= {"__id__": schema["content"]["__id__"]}

    with pytest.raises(ValueError, match="its content is damaged"):
        load(altered(good, tmp_path / "bad", change))


def test_an_array_that_announces_more_than_it_has_is_refused(good, tmp_path):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**14,)})
    contents = members(good)
    contents[next(name for name in contents if name.endswith(".npy"))] = stream.getvalue()
    with pytest.raises(ValueError, match=r"its array '.*' is damaged"):
        load(write(tmp_path / "bad", contents))


def test_compressed_and_doubled_members_are_refused(good, tmp_path):
    with pytest.raises(ValueError, match="compressed members"):
        load(write(tmp_path / "bad", members(good), zipfile.ZIP_DEFLATED))
    with warnings.catch_warnings(), zipfile.ZipFile(write(tmp_path / "bad", members(good)), "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("schema.json", "{}")
    with pytest.raises(ValueError, match="two members of the same name"):
        load(tmp_path / "bad")


def restamped(good, target, **changes):
    contents = members(good)
    header = json.loads(contents[MEMBER])
    header["versions"]["pluri"] = changes.pop("pluri", header["versions"]["pluri"])
    return write(target, contents | {MEMBER: json.dumps(header | changes)})


def test_the_header_tells_class_and_versions(good):
    info = read_info(good)
    assert info.class_name == "pluri.sequences.gaussian.GaussianHMM"
    assert info.format == 1
    assert info.versions["numpy"] == np.__version__
    assert info.versions.keys() == {"pluri", "numpy", "scikit-learn", "skops"}
    assert info.versions["pluri"] == installed("pluri")


@pytest.mark.parametrize("newer", ["999.0.0", "1.999.1", "1.999"])
def test_a_newer_minor_version_warns(good, tmp_path, newer):
    with pytest.warns(VersionWarning, match=f"was saved by pluri {newer}, newer than this pluri"):
        model = load(restamped(good, tmp_path / "new", pluri=newer))
    assert isinstance(model, GaussianHMM)


@pytest.mark.parametrize("older", ["0.0.1", "0.1.999", "unknown", "x"])
def test_an_older_or_unknown_version_does_not(good, tmp_path, older):
    assert isinstance(load(restamped(good, tmp_path / "old", pluri=older)), GaussianHMM)


def test_a_newer_format_is_refused(good, tmp_path):
    with pytest.raises(ValueError, match=r"path must hold a model of file format 1 or older, got format 2 .*update"):
        load(restamped(good, tmp_path / "new", format=2, pluri="9.0"))


def test_a_file_cannot_choose_where_a_later_fit_reads_or_writes(good, tmp_path):
    def change(schema):
        schema["content"]["content"]["checkpoint"] = text("/etc/passwd")
        schema["content"]["content"]["engine"] = sequence(text("x"))

    model = load(altered(good, tmp_path / "bad", change))
    assert model.checkpoint is None
    assert model.engine is None


@pytest.mark.parametrize("cause", [RuntimeError("cannot cache function"), ImportError("no such library")])
def test_what_is_not_the_fault_of_a_file_is_not_called_damage(good, monkeypatch, cause):
    imported = importlib.import_module

    def failing(name, *rest):
        if name.startswith("pluri.sequences"):
            raise cause
        return imported(name, *rest)

    monkeypatch.setattr("importlib.import_module", failing)
    with pytest.raises(type(cause), match=str(cause)):
        load(good)
