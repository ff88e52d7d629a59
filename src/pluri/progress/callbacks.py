"""scikit-learn's callbacks (``estimator.set_callbacks(ProgressBar())``, 1.9 and newer) for iterative fits.

An estimator inherits from :class:`CallbackSupport`, decorates ``fit`` with :func:`with_callbacks` (scikit-learn's own
``_fit_context`` does the same) and opens :func:`fit_callbacks` around its loop. Callbacks then see the tasks
``fit > iteration``, or ``fit > run > iteration`` when there are several runs. Older versions have no callbacks: all
of it does nothing there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pluri.progress.bar import Iteration

Method = TypeVar("Method", bound=Callable[..., Any])
Hook = Callable[[Any], bool]

if TYPE_CHECKING:

    class CallbackSupport:
        """Mixin: gives an estimator ``set_callbacks``."""

        def set_callbacks(self, *callbacks: Any) -> Any: ...

    def with_callbacks(method: Method) -> Method:
        """Decorate ``fit`` so that callbacks are torn down whatever happens."""

else:
    try:
        from sklearn.callback import CallbackSupportMixin as CallbackSupport
        from sklearn.callback import with_callbacks
    except ImportError:

        class CallbackSupport:
            """Mixin that does nothing: this scikit-learn has no callbacks."""

        def with_callbacks(method):
            """Return ``fit`` as it is: this scikit-learn has no callbacks."""
            return method


@contextmanager
def fit_callbacks(
    estimator: Any,
    *,
    max_iter: int,
    n_init: int = 1,
    X: Any = None,
    y: Any = None,
    metadata: Mapping[str, Any] | None = None,
    attributes: Callable[[Any], Mapping[str, Any]] | None = None,
) -> Iterator[Hook | None]:
    """Open the callbacks of an estimator around its loop.

    Parameters
    ----------
    estimator : object
        The estimator being fitted.
    max_iter, n_init : int
        Largest number of iterations of a run, and number of runs.
    X, y, metadata : optional
        What ``fit`` was given, for callbacks that ask for it. ``ScoringMonitor`` scores only where ``y`` is given.
    attributes : callable, optional
        From an iteration's parameters to the fitted attributes of an estimator that stopped there. It is called only
        for callbacks that ask for a fitted estimator.

    Yields
    ------
    callable or None
        Hook to pass as ``on_iteration``; None if the estimator has no callbacks. Set the fitted attributes before
        leaving the block, so that callbacks can use them at the end of ``fit``.

    Examples
    --------
    >>> from pluri.progress import CallbackSupport, fit_callbacks, with_callbacks
    >>> class Estimator(CallbackSupport):
    ...     @with_callbacks
    ...     def fit(self, X):
    ...         with fit_callbacks(self, max_iter=10, X=X) as on_iteration:
    ...             self.hook_ = on_iteration
    ...         return self
    >>> Estimator().fit([[1.0]]).hook_ is None
    True
    """
    if not getattr(estimator, "_skl_callbacks", None):
        yield None
        return
    tasks = _Tasks(estimator, max_iter, n_init, {"X": X, "y": y, "metadata": metadata}, attributes)
    try:
        yield tasks.on_iteration
    except BaseException:
        tasks.close_inner()
        raise
    tasks.close_inner()
    tasks.end(tasks.root, reconstruction_attributes={})


class _Tasks:
    """The chain of open tasks: fit, the run if there are several, the iteration."""

    def __init__(
        self,
        estimator: Any,
        max_iter: int,
        n_init: int,
        given: dict[str, Any],
        attributes: Callable[[Any], Mapping[str, Any]] | None,
    ) -> None:
        self.given = {"estimator": estimator} | given
        self.attributes = attributes
        self.max_iter = max_iter
        self.nested = n_init > 1
        self.root = estimator._init_callback_context(max_subtasks=n_init if self.nested else max_iter)
        self.root.call_on_fit_task_begin(**self.given)
        self.run: Any = None
        self.iteration: Any = None
        self.restart = 0
        self.open_inner()

    def begin(self, parent: Any, name: str, max_subtasks: int) -> Any:
        task = parent.subcontext(task_name=name, max_subtasks=max_subtasks)
        task.call_on_fit_task_begin(**self.given)
        return task

    def end(self, task: Any, **extra: Any) -> bool:
        return bool(task.call_on_fit_task_end(**self.given, **extra))

    def open_inner(self) -> None:
        """Begin the next iteration, and its run if none is open."""
        if self.nested and self.run is None:
            self.run = self.begin(self.root, "run", self.max_iter)
        self.iteration = self.begin(self.run if self.nested else self.root, "iteration", 0)

    def close_inner(self, **extra: Any) -> bool:
        """End what is open inside the fit; True if a callback asks to stop at the level of runs."""
        if self.iteration is not None:
            self.end(self.iteration)
        stop = self.run is not None and self.end(self.run, **extra)
        self.run = self.iteration = None
        return stop

    def on_iteration(self, state: Iteration) -> bool:
        """End the iteration that just ran and begin the next one, if there is to be one."""
        if state.restart != self.restart and self.iteration is not None:
            self.close_inner()  # the run before this one failed without a last iteration
        self.restart = state.restart
        if self.iteration is None:
            self.open_inner()
        extra: dict[str, Any] = {}
        if self.attributes is not None:
            params, attributes = state.params, self.attributes  # type: ignore[attr-defined]
            extra["reconstruction_attributes"] = lambda: attributes(params)
        stop = self.end(self.iteration, **extra)
        self.iteration = None
        if stop or state.reason is not None:
            if self.close_inner(**extra):
                raise StopIteration
        else:
            self.open_inner()
        return stop
