# SPDX-License-Identifier: Apache-2.0
# An install script: what Debian wants in share/doc of each package. The install rule sets package, version, maintainer and source.
# Dates are those of SOURCE_DATE_EPOCH, where it is set.
set(folder "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/doc/${package}")
file(READ "${source}/NOTICE" notice)
string(STRIP "${notice}" notice)
string(REGEX REPLACE "\n" "\n " notice "${notice}")
string(REGEX REPLACE "\n \n" "\n .\n" notice "${notice}")
configure_file("${source}/packaging/copyright.in" "${folder}/copyright" @ONLY)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file("${source}/packaging/changelog.in" "${folder}/changelog.Debian" @ONLY)
configure_file("${source}/CHANGELOG.md" "${folder}/changelog" COPYONLY)
find_program(GZIP gzip REQUIRED)
execute_process(COMMAND "${GZIP}" -9nf "${folder}/changelog" "${folder}/changelog.Debian" COMMAND_ERROR_IS_FATAL ANY)
