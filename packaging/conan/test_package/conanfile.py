import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class TestPackageConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    @property
    def _calendar(self):
        return bool(self.dependencies["hashed_wheel_timer"].options.calendar)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["WITH_CALENDAR"] = self._calendar
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder=os.path.join("..", "..", "..", "tests", "consumer", "program"))
        cmake.build()

    def test(self):
        if can_run(self):
            for program in ["consumer"] + (["calendar_consumer"] if self._calendar else []):
                self.run(os.path.join(self.cpp.build.bindir, program), env="conanrun")
