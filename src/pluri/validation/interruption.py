"""Ctrl-C in the middle of long work: what was reached is kept first, then the interrupt goes on.

Three parts. A loop that can keep what it has catches the ``KeyboardInterrupt``, calls `hold`, and returns as usual. The
public function or method it runs in is marked by `interruptible` (estimators get that from
`pluri.validation.estimator.Estimator`): when its result is complete, it raises ``KeyboardInterrupt`` with that result
as the attribute ``result``. So whoever called it stops too. With ``pluri.on_interrupt("keep")`` it returns the result
with a warning instead.

A second Ctrl-C is not held by anybody: it ends the work at once, and an estimator is as it was before the call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from types import CodeType
from typing import Any, ParamSpec, Self, TypeVar, overload

from pluri.validation.interrupt_choice import keeps

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
#: The attribute that marks what is `interruptible`.
MARK = "__interruptible__"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C on its way from work inside other work of pluri, where it was held, to the caller.

    The caller gets a plain ``KeyboardInterrupt``: only of that Python tells the shell that it was Ctrl-C, so that a
    script around the program ends too.

    Parameters
    ----------
    message : str
        How far the work had come, and what is kept.
    result : object, optional
        What the work would have returned; None if there was nothing to keep.
    """

    def __init__(self, message: str = "", result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class _Work:
    """A call of something interruptible that is under way."""

    def __init__(self, name: str, owner: object | None, outer: _Work | None) -> None:
        self.name = name
        self.owner = owner
        self.outer = outer
        self.first: _Work = self if outer is None else outer.first
        #: Whether an interrupt waits until the result is complete, and what is to be said then.
        self.held = False
        self.message = ""
        #: Of the outermost work: whether Ctrl-C was heard anywhere in it.
        self.heard = False

    def finish(self, result: Any) -> Any:
        """The interrupt that was held, now that the result is complete."""
        if self.outer is None and keeps():
            # The frame between this one and the caller's is not counted.
            warnings.warn(self.message, UserWarning, stacklevel=2)
            return result
        raise self._interrupt(self.message, result)

    def _interrupt(self, message: str, result: Any = None) -> KeyboardInterrupt:
        if self.outer is not None:
            return Interrupted(message, result)
        stop = KeyboardInterrupt(message)
        stop.result = result  # type: ignore[attr-defined]
        return stop

    def lost(self, error: BaseException) -> KeyboardInterrupt | None:
        """The interrupt as which an error that leaves nothing to keep goes on; None if it goes on as it is."""
        if isinstance(error, Interrupted) or (self.held and not isinstance(error, KeyboardInterrupt)):
            unchanged = "" if self.owner is None else "; the estimator is as it was before"
            return self._interrupt(f"{self.name} was interrupted before there was anything to keep{unchanged}")
        return None


_under_way: ContextVar[_Work | None] = ContextVar("pluri_work", default=None)


def hold(stop: KeyboardInterrupt | None = None, message: str = "") -> None:
    """Take notice of Ctrl-C in a loop that keeps what it has: the first statement of the handler.

    It raises `stop` again if it must not be held: if it is the second one, or if nobody would raise it later.

    Parameters
    ----------
    stop : KeyboardInterrupt, optional
        The exception being handled, if Ctrl-C came as one.
    message : str, optional
        How far the work had come and what is kept: one sentence, for the warning or the exception. See also `kept`.
    """
    work = _under_way.get()
    if work is None or (work.first.heard and not isinstance(stop, Interrupted)):
        raise stop or KeyboardInterrupt
    work.first.heard = work.held = True
    work.message = message or str(stop or "") or f"{work.name} was interrupted; what it had so far is kept"


class holding:
    """A block that keeps what it has made when Ctrl-C comes: `hold` as a ``with`` statement.

    Parameters
    ----------
    message : str or callable, optional
        As in `hold`; a function is called when Ctrl-C has come, and says how far the block had got.
    having : object, optional
        What the block fills with things to keep, or a function that tells whether there are any: while it is empty
        (false), Ctrl-C goes through.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C ended the block early.

    Examples
    --------
    >>> from pluri.validation.interruption import holding, interruptible
    >>> @interruptible
    ... def squares(numbers):
    ...     found = []
    ...     with holding(lambda: f"interrupted after {len(found)} numbers, which are kept"):
    ...         for number in numbers:
    ...             found.append(number**2)
    ...     return found
    >>> squares([1, 2])
    [1, 4]
    """

    def __init__(self, message: str | Callable[[], str] = "", having: Any = True) -> None:
        self.message = message
        self.having = having
        self.interrupted = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, KeyboardInterrupt):
            return False
        if not (self.having() if callable(self.having) else self.having):
            return False
        hold(error, self.message() if callable(self.message) else self.message)
        self.interrupted = True
        return True


def kept(message: str) -> None:
    """Say more exactly what is kept of the work whose interrupt is held; the last word is the one that is heard."""
    work = _under_way.get()
    if work is not None and work.held:
        work.message = message


def held() -> bool:
    """Whether an interrupt is held: what is complete is to be kept, and nothing further begun."""
    work = _under_way.get()
    return work is not None and work.held


@overload
def interruptible(function: Callable[Arguments, Result], /) -> Callable[Arguments, Result]: ...


@overload
def interruptible(
    *, method: bool = False, finishing: bool = False
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]: ...


def interruptible(function: Any = None, /, *, method: bool = False, finishing: bool = False) -> Any:
    """Mark a public function in which an interrupt may be held: it is raised when its result is complete.

    Inside other interruptible work it only returns its result, and that work raises the interrupt. When an interrupt
    is held no further interruptible work begins.

    Parameters
    ----------
    function : callable
    method : bool, default=False
        Whether it is a method that changes its object: the object is then put back as it was if the interrupt leaves
        nothing to keep, and the interrupt is raised at the end of the method even inside the work of other objects.
    finishing : bool, default=False
        Whether it is short, and may be needed to make something of what interrupted work has left.

    Examples
    --------
    >>> from pluri.validation.interruption import hold, interruptible
    >>> @interruptible
    ... def squares(numbers):
    ...     found = []
    ...     try:
    ...         for number in numbers:
    ...             found.append(number**2)
    ...     except KeyboardInterrupt as stop:
    ...         hold(stop, f"interrupted after {len(found)} numbers, which are kept")
    ...     return found
    >>> def typing():
    ...     yield 2
    ...     raise KeyboardInterrupt
    >>> try:
    ...     squares(typing())
    ... except KeyboardInterrupt as stop:
    ...     print(stop, stop.result)
    interrupted after 1 numbers, which are kept [4]
    """
    if function is None:
        return partial(_marked, method=method, finishing=finishing)
    return _marked(function, method, finishing)


def _marked(function: Callable[..., Any], method: bool, finishing: bool) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        outer = _under_way.get()
        owner = args[0] if method else None
        if outer is not None:
            if outer.held and not finishing:
                raise Interrupted(outer.message)
            if owner is None or owner is outer.owner:
                return function(*args, **kwargs)
        work = _Work(f"{type(owner).__name__}.{function.__name__}" if method else function.__name__, owner, outer)
        before = dict(vars(owner)) if method else {}
        try:
            # Inside the try and without a token: Ctrl-C may come between any two calls.
            _under_way.set(work)
            result = function(*args, **kwargs)
        except BaseException as error:
            if method and (work.held or isinstance(error, KeyboardInterrupt)):
                put_back(owner, before)
            instead = work.lost(error)
            if instead is not None:
                raise instead from error
            raise
        finally:
            _under_way.set(outer)
        return work.finish(result) if work.held else result

    call.__code__ = _unseen(call.__code__)  # type: ignore[attr-defined]
    setattr(call, MARK, True)
    return call


def _unseen(code: CodeType) -> CodeType:
    """The same code as a frame that `warnings` does not count.

    Warnings point to the line that called a fit, by counting frames; one between the two would have them all point
    here. The only frames that are not counted are those of the import system, known by the name of their file.
    """
    return code.replace(co_filename=f"{code.co_filename} (not counted by warnings, as importlib._bootstrap)")


@contextmanager
def restored_on_failure(estimator: Any) -> Iterator[None]:
    """Put an estimator's attributes back if the block fails: a refit that fails loses nothing."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        put_back(estimator, before)
        raise


def put_back(estimator: Any, before: Mapping[str, Any]) -> None:
    """Give an estimator the attributes it had before."""
    # scikit-learn's own records of a running fit stay: it tears its callbacks down by them.
    running = {name: value for name, value in vars(estimator).items() if name.startswith(("_callback", "_skl"))}
    vars(estimator).clear()
    vars(estimator).update({**before, **running})
