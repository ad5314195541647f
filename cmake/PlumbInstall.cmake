# SPDX-License-Identifier: Apache-2.0
# Install rules: headers, both libraries in both forms, the plumb command, documents, the CMake package and pkg-config files.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/plumb")

install(DIRECTORY include/plumb DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")

# One export file per form: a consumer of the shared one needs no zstd package.
foreach(kind IN ITEMS static shared)
  install(TARGETS plumb_${kind} plumb_analysis_${kind} EXPORT plumb_${kind}
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(EXPORT plumb_${kind} NAMESPACE plumb:: FILE plumb_${kind}.cmake DESTINATION "${package_dir}")
endforeach()
install(TARGETS plumb_metrics_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" NAMELINK_SKIP) # opened, never linked
if(TARGET plumb_naming_shared)
  install(TARGETS plumb_naming_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" NAMELINK_SKIP)
endif()

if(TARGET plumb_cli)
  install(FILES share/plumb/kernels.rules share/plumb/nvtx.rules DESTINATION "${CMAKE_INSTALL_DATADIR}/plumb")
  install(DIRECTORY share/plumb/queries DESTINATION "${CMAKE_INSTALL_DATADIR}/plumb")
  install(FILES share/grafana/plumb.json DESTINATION "${CMAKE_INSTALL_DATADIR}/plumb/grafana")
  install(TARGETS plumb_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  if(NOT CMAKE_CROSSCOMPILING)
    install(CODE "execute_process(COMMAND \"$<TARGET_FILE:plumb_cli>\" help --man
                                  OUTPUT_FILE \"${PROJECT_BINARY_DIR}/plumb.1\" COMMAND_ERROR_IS_FATAL ANY)")
    install(FILES "${PROJECT_BINARY_DIR}/plumb.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  endif()
endif()

if(TARGET plumb_attach_library)
  install(TARGETS plumb_attach_library LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
if(TARGET plumb_python_extension) # for `plumb run`; libplumb.so is found two folders up
  install(DIRECTORY "${PROJECT_BINARY_DIR}/python/plumb" DESTINATION "${CMAKE_INSTALL_LIBDIR}/plumb/python"
          PATTERN "*.so.*" EXCLUDE PATTERN "__pycache__" EXCLUDE)
endif()

configure_package_config_file(cmake/plumbConfig.cmake.in "${PROJECT_BINARY_DIR}/plumbConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may change the ABI.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/plumbConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/plumbConfig.cmake" "${PROJECT_BINARY_DIR}/plumbConfigVersion.cmake"
        DESTINATION "${package_dir}")

# Relative to the .pc file, so that an installed tree may be moved.
file(RELATIVE_PATH PLUMB_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" PLUMB_PC_PREFIX "${PLUMB_PC_PREFIX}")
foreach(name IN ITEMS plumb plumb-analysis)
  configure_file(cmake/${name}.pc.in "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()

install(FILES LICENSE NOTICE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
foreach(document IN ITEMS README.md docs)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${document}")
    if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${document}")
      install(DIRECTORY "${document}/" DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.md")
    else()
      install(FILES "${document}" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
    endif()
  endif()
endforeach()
