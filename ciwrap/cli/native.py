"""`ciwrap native`: where the files lie that programs which record are built with."""

from __future__ import annotations

import click


@click.command(name="native", short_help="Say where the recording library and its headers lie.")
@click.option("--include", is_flag=True, help="The folder of ciwrap/record.h.")
@click.option("--fortran", is_flag=True, help="The folder of ciwrap_record.f90 and its C.")
@click.option("--cmake", is_flag=True, help="The folder for -Dciwrap-record_DIR of CMake.")
@click.option("--pkg-config", is_flag=True, help="The folder for PKG_CONFIG_PATH.")
@click.option("--library", is_flag=True, help="The library that programs load to record.")
@click.option("--kokkos", is_flag=True, help="The library for KOKKOS_TOOLS_LIBS.")
def command(**wanted: bool) -> int:
    """Print where the files lie that programs which record are built with: a path for each option,
    in the order below, and all of them for none.

    A program needs none of this to run: `ciwrap record` tells it where the library is.

    Exit codes: 0 printed, 2 usage, 3 this installation lacks it.
    """
    from ciwrap.native import library

    places = {
        "include": library.include_folder,
        "fortran": library.fortran_folder,
        "cmake": library.cmake_folder,
        "pkg-config": library.pkg_config_folder,
        "library": library.library_path,
        "kokkos": library.kokkos_path,
    }
    chosen = [name for name in places if wanted[name.replace("-", "_")]]
    for name in chosen:
        click.echo(places[name]())
    if not chosen:
        for name, find in places.items():
            click.echo(f"{name:<12}{find()}")
    return 0
