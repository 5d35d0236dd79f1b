import os

from conan import ConanFile
from conan.tools.files import copy


class FromSystemConan(ConanFile):
    """Packages a dependency from the system's files, so that the recipe can be checked without a remote."""

    settings = "os", "arch", "compiler", "build_type"
    package_type = "unknown"

    def package(self):
        headers = os.path.join("include", self.name)
        copy(self, "*.h", os.path.join("/usr", headers), os.path.join(self.package_folder, headers))

    def package_info(self):
        if self.name == "date":
            self.cpp_info.components["date-tz"].system_libs = ["date-tz"]
            self.cpp_info.components["date-tz"].set_property("cmake_target_name", "date::date-tz")
