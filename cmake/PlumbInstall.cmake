# SPDX-License-Identifier: Apache-2.0
# Install rules: headers, both libraries in both forms, the plumb command, documents, the CMake package and pkg-config files.
# The components are those of the packages (PlumbPackages.cmake): libplumb, analysis, dev, command, python, and notices.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/plumb")

install(DIRECTORY include/plumb DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")

# One export file per form: a consumer of the shared one needs no zstd package.
foreach(kind IN ITEMS static shared)
  foreach(component IN ITEMS libplumb analysis)
    string(REPLACE "libplumb" "plumb" target "${component}_${kind}")
    string(REGEX REPLACE "^analysis" "plumb_analysis" target "${target}")
    install(TARGETS ${target} EXPORT plumb_${kind}
            ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev
            LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ${component} NAMELINK_COMPONENT dev
            RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT ${component})
  endforeach()
  install(EXPORT plumb_${kind} NAMESPACE plumb:: FILE plumb_${kind}.cmake DESTINATION "${package_dir}" COMPONENT dev)
endforeach()
# Opened, never linked.
install(TARGETS plumb_metrics_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libplumb NAMELINK_SKIP)
if(TARGET plumb_naming_shared)
  install(TARGETS plumb_naming_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libplumb NAMELINK_SKIP)
endif()

# plumb_install_output(<file> <folder> <argument of plumb> …): what the command prints, as a file. PACK: by gzip, where there is one.
find_program(PLUMB_GZIP gzip)
function(plumb_install_output file folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "PACK" "" "")
  set(made "${PROJECT_BINARY_DIR}/installed/${file}")
  set(words "${arg_UNPARSED_ARGUMENTS}")
  list(JOIN words " " words)
  install(CODE "file(MAKE_DIRECTORY \"${PROJECT_BINARY_DIR}/installed\")
                execute_process(COMMAND \"$<TARGET_FILE:plumb_cli>\" ${words} OUTPUT_FILE \"${made}\" COMMAND_ERROR_IS_FATAL ANY)"
          COMPONENT command)
  if(arg_PACK AND PLUMB_GZIP)
    install(CODE "execute_process(COMMAND \"${PLUMB_GZIP}\" -9nf \"${made}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT command)
    string(APPEND made ".gz")
  endif()
  install(FILES "${made}" DESTINATION "${folder}" COMPONENT command)
endfunction()

if(TARGET plumb_cli)
  install(FILES share/plumb/kernels.rules share/plumb/nvtx.rules DESTINATION "${CMAKE_INSTALL_DATADIR}/plumb" COMPONENT command)
  install(DIRECTORY share/plumb/queries share/plumb/clickhouse DESTINATION "${CMAKE_INSTALL_DATADIR}/plumb" COMPONENT command)
  install(FILES share/grafana/plumb.json DESTINATION "${CMAKE_INSTALL_DATADIR}/plumb/grafana" COMPONENT command)
  install(TARGETS plumb_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT command)
  if(NOT CMAKE_CROSSCOMPILING)
    plumb_install_output(plumb.1 "${CMAKE_INSTALL_MANDIR}/man1" PACK help --man)
    # Where the shells of most systems look; Debian's zsh has a folder of its own for what packages bring.
    set(zsh site-functions)
    if(EXISTS /etc/debian_version)
      set(zsh vendor-completions)
    endif()
    plumb_install_output(plumb "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" completion bash)
    plumb_install_output(_plumb "${CMAKE_INSTALL_DATADIR}/zsh/${zsh}" completion zsh)
    plumb_install_output(plumb.fish "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" completion fish)
  endif()
endif()

if(TARGET plumb_attach_library) # nobody links with it
  install(TARGETS plumb_attach_library LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/plumb/attach" COMPONENT command)
  install(FILES "${PROJECT_SOURCE_DIR}/src/attach/vulkan/plumb_attach_layer.json"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/plumb/attach" COMPONENT command)
endif()

# plumb_install_python(<folder> <component> …): the Python package; libplumb.so is found by the loader.
function(plumb_install_python folder)
  install(DIRECTORY "${PROJECT_BINARY_DIR}/python/plumb" DESTINATION "${folder}" COMPONENT ${ARGN}
          PATTERN "*.so*" EXCLUDE PATTERN "__pycache__" EXCLUDE)
  if(TARGET plumb_python_extension)
    install(TARGETS plumb_python_extension LIBRARY DESTINATION "${folder}/plumb" COMPONENT ${ARGN})
  endif()
endfunction()
if(TARGET plumb_python_extension) # for `plumb run`; libplumb.so is three folders up
  plumb_install_python("${CMAKE_INSTALL_LIBDIR}/plumb/python" python)
endif()

configure_package_config_file(cmake/plumbConfig.cmake.in "${PROJECT_BINARY_DIR}/plumbConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may change the ABI.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/plumbConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/plumbConfig.cmake" "${PROJECT_BINARY_DIR}/plumbConfigVersion.cmake"
        DESTINATION "${package_dir}" COMPONENT dev)

# Relative to the .pc file, so that an installed tree may be moved.
file(RELATIVE_PATH PLUMB_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" PLUMB_PC_PREFIX "${PLUMB_PC_PREFIX}")
foreach(name IN ITEMS plumb plumb-analysis)
  configure_file(cmake/${name}.pc.in "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)
endforeach()

install(FILES LICENSE NOTICE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT notices)
install(FILES README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT command)
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT command FILES_MATCHING PATTERN "*.md" PATTERN "*.png")

include(PlumbPackages)
