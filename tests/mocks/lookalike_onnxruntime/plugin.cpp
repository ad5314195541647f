// SPDX-License-Identifier: Apache-2.0
// A library that a program loads and unloads, and that asks for onnxruntime.
#include "lookalike_onnxruntime/places.hpp"

extern "C" int lookalike_ort_plugin() { return OrtGetApiBase()->get_api(LOOKALIKE_ORT_MINOR) != nullptr ? 1 : 0; }
