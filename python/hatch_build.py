"""Build hook: puts the binary of THRONG_BINARY into the wheel, and with THRONG_NOTICES the licences of its libraries."""

import os
import re
import subprocess
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BinaryHook(BuildHookInterface):
    def initialize(self, version, build_data):
        if version == "editable":  # The tests of a checkout take THRONG_BINARY at run time.
            return
        binary = os.environ.get("THRONG_BINARY")
        if not binary or not os.access(binary, os.X_OK):
            raise SystemExit("the wheel contains the binary: set THRONG_BINARY to an executable throng")
        printed = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
        with open(os.path.join(self.root, "../Cargo.toml"), encoding="utf-8") as cargo:
            declared = re.search(r'(?m)^version = "([^"]+)"', cargo.read())[1]
        if printed != declared:
            raise SystemExit(f"{binary} has version {printed}, but Cargo.toml has {declared}")
        build_data["force_include"][os.path.abspath(binary)] = "throng/bin/throng"
        if notices := os.environ.get("THRONG_NOTICES"):
            build_data["force_include"][os.path.abspath(notices)] = "throng/THIRD-PARTY.txt"
        build_data["pure_python"] = False
        # The binary uses the system's OpenSSL: `auditwheel repair` adds it and replaces this tag by manylinux.
        build_data["tag"] = "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())
