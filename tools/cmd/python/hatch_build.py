"""Builds the aton commands with Go and puts them into the wheel, as scripts on PATH.

ATON_TARGET=linux/arm64 (GOOS/GOARCH) builds for another machine; without it, for this one. A release has built them already: ATON_BINARIES is
the folder. ATON_VERSION is the version, in the form of git describe, which is asked where it is not set.
"""
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The oldest systems that Go's binaries run on: without the CUDA driver they are static, so that any Linux will do.
TAGS = {
    "linux/amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux/arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin/amd64": "macosx_12_0_x86_64",
    "darwin/arm64": "macosx_12_0_arm64",
    "windows/amd64": "win_amd64",
    "windows/arm64": "win_arm64",
}
COMMANDS = ("aton", "aton-batch", "aton-opt")
NOTICES = "THIRD-PARTY-LICENSES"


def described() -> str:
    """The version as git names it, v1.2.3 or v1.2.3-4-g0123456; v0.0.0 where there is no tag."""
    given = os.environ.get("ATON_VERSION")
    if given:
        return given
    try:
        return subprocess.run(["git", "describe", "--tags", "--match", "v[0-9]*", "--dirty"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "v0.0.0"


def python_version() -> str:
    """The version as Python's packages have it: a commit behind a tag is a development version of the next release."""
    found = re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)(?:-(a|b|rc)\.?(\d+))?(?:-(\d+)-g(\w+))?(-dirty)?", described())
    if not found:
        raise ValueError(f"{described()} is no version of the form v1.2.3, v1.2.3-rc.1 or v1.2.3-4-g0123456")
    major, minor, patch, phase, number, commits, commit, dirty = found.groups()
    last = f"{phase}{number}" if phase else ""
    local = ".".join(w for w in ("g" + commit if commit else "", "dirty" if dirty else "") if w)
    if commits:
        if phase:
            last = f"{phase}{int(number) + 1}"
        else:
            patch = str(int(patch) + 1)
        last += f".dev{commits}"
    return f"{major}.{minor}.{patch}{last}" + (f"+{local}" if local else "")


class Hook(BuildHookInterface[Any]):
    """Adds the binaries, and the tag of the platform that they are for."""

    def initialize(self, version: str, build_data: Dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        target = os.environ.get("ATON_TARGET") or self.go("env", "GOOS") + "/" + self.go("env", "GOARCH")
        if target not in TAGS:
            sys.exit(f"there are no wheels for {target}; ATON_TARGET is one of {', '.join(TAGS)}")
        goos, goarch = target.split("/")
        top = Path(self.root).parents[2]
        built = os.environ.get("ATON_BINARIES")
        out = Path(built) if built else top / "out" / "wheel" / target.replace("/", "-")
        env = dict(os.environ, GOOS=goos, GOARCH=goarch, CGO_ENABLED="0")
        for name in COMMANDS:
            file = name + (".exe" if goos == "windows" else "")
            if not built:
                flags = f"-ldflags=-s -w -X github.com/aton-project/aton/internal/version.release={described()}"
                subprocess.run(["go", "build", "-trimpath", "-buildvcs=false", "-tags=nocuda", flags, "-o", str(out / file), f"./tools/cmd/{name}"],
                               cwd=top, env=env, check=True)
            build_data["shared_scripts"][str(out / file)] = file
        if built:
            build_data["extra_metadata"][str(out / NOTICES)] = NOTICES
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + TAGS[target]

    def go(self, *args: str) -> str:
        return subprocess.run(["go", *args], capture_output=True, text=True, check=True).stdout.strip()
