"""Libraries that only some formats need, loaded when a file of that format is opened."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ciwrap.errors import ReaderPluginError, one_line

if TYPE_CHECKING:
    import os


def library(name: str, extra: str, *, file: str | os.PathLike[str]) -> Any:
    """The module of that name, out of the extra `ciwrap[extra]`.

    Raises ReaderPluginError if it is not installed or cannot be loaded.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.split(".")[0]
        if error.name is not None and error.name.split(".")[0] != package:
            problem = f"{package} is installed, but what it needs is not: {one_line(error)}"
        else:
            problem = f"is read with {package}, which is not installed"
        raise ReaderPluginError(
            problem, file=file, remedy=f"pip install 'ciwrap[{extra}]'"
        ) from error
    except (ImportError, OSError) as error:
        raise ReaderPluginError(
            f"{name} cannot be loaded: {one_line(error)}",
            file=file,
            remedy=f"pip install --force-reinstall 'ciwrap[{extra}]'",
        ) from error
