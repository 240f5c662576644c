"""Builds the aton commands with Go and puts them into the wheel, as scripts on PATH.

ATON_TARGET=linux/arm64 (GOOS/GOARCH) builds for another machine; without it, for this one.
"""
import os
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
COMMANDS = ("aton", "aton-opt")


class Hook(BuildHookInterface[Any]):
    """Adds the binaries, and the tag of the platform that they are for."""

    def initialize(self, version: str, build_data: Dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        target = os.environ.get("ATON_TARGET") or self.go("env", "GOOS") + "/" + self.go("env", "GOARCH")
        if target not in TAGS:
            sys.exit(f"there are no wheels for {target}; ATON_TARGET is one of {', '.join(TAGS)}")
        goos, goarch = target.split("/")
        top = Path(self.root).parent.parent
        out = top / "out" / "wheel" / target.replace("/", "-")
        env = dict(os.environ, GOOS=goos, GOARCH=goarch, CGO_ENABLED="0")
        for name in COMMANDS:
            file = name + (".exe" if goos == "windows" else "")
            subprocess.run(["go", "build", "-trimpath", "-tags=nocuda", "-ldflags=-s -w", "-o", str(out / file), f"./tools/{name}"],
                           cwd=top, env=env, check=True)
            build_data["shared_scripts"][str(out / file)] = file
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + TAGS[target]

    def go(self, *args: str) -> str:
        return subprocess.run(["go", *args], capture_output=True, text=True, check=True).stdout.strip()
