# SPDX-License-Identifier: Apache-2.0
# Packages by CPack, out of the install rules: five for Debian (cpack -G DEB) and one archive (-G TGZ). `./dev package` makes both and
# the wheel; tests/packages/check installs them on a bare system. What only Debian wants is in components that nothing else installs.
set(CPACK_PACKAGE_NAME plumb)
set(CPACK_PACKAGE_VENDOR "The Plumbline authors")
set(CPACK_PACKAGE_CONTACT "The Plumbline authors <authors@plumbline.invalid>")
set(CPACK_PACKAGE_FILE_NAME "plumb-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_SOURCE_DIR}/build/packages")
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/packaging/strip_archives.cmake") # which CPACK_STRIP_FILES leaves as they are
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # else it stands before that of each package

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}") # ours, which no package has yet
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENTS_ALL "")
set(deb_version "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(so_version "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")

# plumb_deb(<component> <package> <section> <depends on> [CONTROL <file> …]): the package of a component, with the documents that
# each has; its description is packaging/<component>.txt.
function(plumb_deb component package section depends)
  cmake_parse_arguments(PARSE_ARGV 4 arg "" "" "CONTROL")
  install(CODE "set(package \"${package}\")
                set(version \"${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}\")
                set(maintainer \"${CPACK_PACKAGE_CONTACT}\")
                set(source \"${PROJECT_SOURCE_DIR}\")"
          COMPONENT ${component}_debian EXCLUDE_FROM_ALL)
  install(SCRIPT packaging/debian_documents.cmake COMPONENT ${component}_debian EXCLUDE_FROM_ALL)
  string(TOUPPER "${component}" upper)
  file(READ packaging/${component}.txt description)
  list(TRANSFORM arg_CONTROL PREPEND "${PROJECT_SOURCE_DIR}/packaging/" OUTPUT_VARIABLE control)
  foreach(setting IN ITEMS "PACKAGE_NAME;${package}" "PACKAGE_SECTION;${section}" "PACKAGE_DEPENDS;${depends}"
          "DESCRIPTION;${description}" "PACKAGE_CONTROL_EXTRA;${control}")
    list(POP_FRONT setting name)
    set(CPACK_DEBIAN_${upper}_${name} "${setting}" PARENT_SCOPE)
  endforeach()
  set(CPACK_COMPONENT_${upper}_GROUP ${component} PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DEBIAN_GROUP ${component} PARENT_SCOPE)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} ${component}_debian PARENT_SCOPE)
endfunction()
plumb_deb(libplumb libplumb${so_version} libs "" CONTROL triggers)
plumb_deb(analysis libplumb-analysis${so_version} libs "libplumb${so_version} ${deb_version}" CONTROL triggers)
plumb_deb(dev libplumb-dev libdevel
  "libplumb${so_version} ${deb_version}, libplumb-analysis${so_version} ${deb_version}, libzstd-dev")
set(CPACK_DEBIAN_LIBPLUMB_PACKAGE_RECOMMENDS "libplumb-analysis${so_version} ${deb_version}") # opened with the first question
if(TARGET plumb_cli)
  plumb_deb(command plumb devel "")
  install(FILES packaging/plumb.overrides DESTINATION share/lintian/overrides RENAME plumb COMPONENT command_debian EXCLUDE_FROM_ALL)
  set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS "libdnnl2, libsqlite3-0") # opened by `plumb decode`, and where a trace is a database
  set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "python3-plumb ${deb_version}") # for `plumb run -- python3 …`
endif()
if(TARGET plumb_python)
  plumb_install_python(lib/python3/dist-packages python_debian EXCLUDE_FROM_ALL)
  plumb_deb(python python3-plumb python
    "python3 (>= 3.10), libplumb${so_version} ${deb_version}, libplumb-analysis${so_version} ${deb_version}"
    CONTROL postinst prerm)
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL python) # the place of plumb run's own
  if(TARGET plumb_python_extension)
    install(CODE "file(RPATH_REMOVE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/python3/dist-packages/plumb/_extension.abi3.so\")"
            COMPONENT python_debian EXCLUDE_FROM_ALL)
  endif()
endif()
include(CPack)
