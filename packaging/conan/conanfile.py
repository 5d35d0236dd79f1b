import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir
from conan.tools.scm import Version

required_conan_version = ">=2.4"


class HashedWheelTimerConan(ConanFile):
    name = "hashed_wheel_timer"
    description = "Hashed wheel timer for request timeouts"
    license = "Apache-2.0"
    topics = ("timer", "timeout", "hashed-wheel-timer", "rpc")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "calendar": [True, False]}
    default_options = {"shared": False, "fPIC": True, "calendar": False}
    implements = ["auto_shared_fpic"]

    @property
    def _root(self):
        return os.path.join(self.recipe_folder, os.pardir, os.pardir)

    def set_version(self):
        header = load(self, os.path.join(self._root, "hashed_wheel_timer", "version.h"))
        self.version = re.search(r'HWT_VERSION_STRING "(.*)"', header)[1]

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "*/CMakeLists.txt", "LICENSE", "hashed_wheel_timer/*", "packaging/*.in",
                        "subprojects/*.wrap"):
            copy(self, pattern, self._root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    @property
    def _chrono_has_time_zones(self):
        return self.settings.compiler == "msvc" and Version(self.settings.compiler.version) >= "193"

    def requirements(self):
        self.requires("concurrentqueue/1.0.5", visible=False)
        if self.options.calendar and not self._chrono_has_time_zones:
            self.requires("date/[>=3.0.1 <4]")

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["HASHED_WHEEL_TIMER_SHARED"] = bool(self.options.shared)
        toolchain.cache_variables["HASHED_WHEEL_TIMER_CALENDAR"] = bool(self.options.calendar)
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        # Conan generates these files itself.
        for folder in ("cmake", "pkgconfig"):
            rmdir(self, os.path.join(self.package_folder, "lib", folder))
        rmdir(self, os.path.join(self.package_folder, "share"))

    def package_info(self):
        # Before 1.0, a minor version may break programs.
        self.cpp_info.set_property("cmake_config_version_compat", "SameMinorVersion")

        timer = self.cpp_info.components["hashed_wheel_timer"]
        timer.libs = ["hashed_wheel_timer"]
        timer.set_property("cmake_target_name", "hashed_wheel_timer::hashed_wheel_timer")
        timer.set_property("pkg_config_name", "hashed_wheel_timer")
        if self.settings.os in ("Linux", "FreeBSD"):
            timer.system_libs = ["pthread"]
        if self.settings.os == "Windows" and self.options.shared:
            timer.defines = ["HWT_SHARED"]

        c = self.cpp_info.components["c"]
        c.libs = ["hashed_wheel_timer_c"]
        c.requires = ["hashed_wheel_timer"]
        c.set_property("cmake_target_name", "hashed_wheel_timer::c")
        c.set_property("pkg_config_name", "hashed_wheel_timer_c")

        if self.options.calendar:
            calendar = self.cpp_info.components["calendar"]
            calendar.libs = ["hashed_wheel_timer_calendar"]
            calendar.requires = ["hashed_wheel_timer"]
            if not self._chrono_has_time_zones:
                calendar.requires.append("date::date-tz")
            calendar.set_property("cmake_target_name", "hashed_wheel_timer::calendar")
            calendar.set_property("pkg_config_name", "hashed_wheel_timer_calendar")
