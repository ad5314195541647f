# SPDX-License-Identifier: Apache-2.0
"""docs/internals/gpu.md holds the table of the committed GPU results, and none of them is the virtual GPU's."""

import sys

import gpu_table

if __name__ == "__main__":
    sys.exit(gpu_table.main(["--check"]))
