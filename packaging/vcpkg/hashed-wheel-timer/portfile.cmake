# An overlay port: it builds the source tree that contains it.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS FEATURES calendar HASHED_WHEEL_TIMER_CALENDAR)
string(COMPARE EQUAL "${VCPKG_LIBRARY_LINKAGE}" "dynamic" SHARED)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${FEATURE_OPTIONS} -DHASHED_WHEEL_TIMER_SHARED=${SHARED} -DFETCHCONTENT_FULLY_DISCONNECTED=ON)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME hashed_wheel_timer CONFIG_PATH lib/cmake/hashed_wheel_timer)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE
  "${CURRENT_PACKAGES_DIR}/debug/include"
  "${CURRENT_PACKAGES_DIR}/debug/share"
  "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
