# SPDX-License-Identifier: Apache-2.0


class RemovableHandle:
    made = 0

    def __init__(self, hooks):
        self.hooks, self.id = hooks, RemovableHandle.made
        RemovableHandle.made += 1

    def remove(self):
        self.hooks.pop(self.id, None)
