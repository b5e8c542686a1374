"""Translates modules of the package to C with mypyc: a step of the build, called by CMakeLists.txt.

    python compile_python.py OUTPUT MODULE...

runs in the folder that holds the package, and writes below OUTPUT what mypyc makes of these modules as one group:

* ``grammask/_compiled/__native_modules.c``, the code of all of them, for the extension module of the group;
* ``grammask/.../MODULE.c`` for each of them, the little extension module by which Python initializes it;
* the manifest, which says what was compiled.
"""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path

from mypyc.build import mypycify

GROUP = "grammask._compiled.modules"


def main(output: Path, modules: list[str]) -> None:
    manifest = runpy.run_path("grammask/_compiled/manifest.py")
    digest = manifest["digest"](Path(), modules)
    shutil.rmtree(output, ignore_errors=True)
    options = [
        "--config-file=",
        f"--cache-dir={output / 'cache'}",
        "--follow-imports=silent",
        "--no-site-packages",  # what the package can use besides is large, and no matter to these modules
        "--ignore-missing-imports",
    ]
    files = [module.replace(".", "/") + ".py" for module in modules]
    mypycify([*options, *files], group_name=GROUP, target_dir=str(output))
    if manifest["digest"](Path(), modules) != digest:
        sys.exit("a source was edited while it was compiled: build once more")
    manifest["write"](output, manifest["Manifest"](tuple(modules), digest))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
