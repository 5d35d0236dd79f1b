# Builds the port with stand-ins for vcpkg's functions, in release and debug, and uses the result.
# usage: cmake -DSOURCE=... -DWORK=... -DLINKAGE=static|dynamic -P vcpkg.cmake
cmake_minimum_required(VERSION 3.21)
set(CURRENT_PORT_DIR "${SOURCE}/packaging/vcpkg/hashed-wheel-timer")
set(CURRENT_PACKAGES_DIR "${WORK}/${LINKAGE}")
set(VCPKG_LIBRARY_LINKAGE ${LINKAGE})

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Enables the first feature of the list. The port has only one.
function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
  list(GET arg_FEATURES 1 option)
  set(${arg_OUT_FEATURE_OPTIONS} -D${option}=ON PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  foreach(type Release Debug)
    run("${CMAKE_COMMAND}" -G Ninja -S "${arg_SOURCE_PATH}" -B "${WORK}/${LINKAGE}-${type}" ${arg_OPTIONS}
      -DCMAKE_BUILD_TYPE=${type} -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0)
  endforeach()
endfunction()

function(vcpkg_cmake_install)
  foreach(type Release Debug)
    set(prefix_of_Release "${CURRENT_PACKAGES_DIR}")
    set(prefix_of_Debug "${CURRENT_PACKAGES_DIR}/debug")
    run("${CMAKE_COMMAND}" --build "${WORK}/${LINKAGE}-${type}")
    run("${CMAKE_COMMAND}" --install "${WORK}/${LINKAGE}-${type}" --prefix "${prefix_of_${type}}")
  endforeach()
endfunction()

# Moves the CMake package files to share/, which is one folder nearer to the prefix, and adds those of the debug build.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
  set(share "${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME}")
  file(RENAME "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}" "${share}")
  file(GLOB of_debug "${CURRENT_PACKAGES_DIR}/debug/${arg_CONFIG_PATH}/*-debug.cmake")
  file(COPY ${of_debug} DESTINATION "${share}")
  set(up "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
  file(GLOB files "${share}/*Targets*.cmake")
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    string(REPLACE "${up}${up}" "${up}" text "${text}")
    if(file MATCHES "-debug.cmake$")
      string(REPLACE "{_IMPORT_PREFIX}/lib" "{_IMPORT_PREFIX}/debug/lib" text "${text}")
    endif()
    file(WRITE "${file}" "${text}")
  endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(COPY ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/hashed-wheel-timer")
endfunction()

include("${CURRENT_PORT_DIR}/portfile.cmake")

foreach(type Release Debug)
  set(program "${WORK}/program-${LINKAGE}-${type}")
  run("${CMAKE_COMMAND}" -G Ninja -S "${SOURCE}/tests/consumer/program" -B "${program}" -DCMAKE_BUILD_TYPE=${type}
    "-DCMAKE_PREFIX_PATH=${CURRENT_PACKAGES_DIR}" -DWITH_CALENDAR=ON)
  run("${CMAKE_COMMAND}" --build "${program}")
  run("${program}/consumer")
  run("${program}/calendar_consumer")
endforeach()
