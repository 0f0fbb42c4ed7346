// The module object: joins the method tables and constants of the family files. Nothing is computed here.
#include "common.h"

#include <vector>

using namespace mt;

// No other file needs to know them.
extern PyMethodDef optimizer_methods[], conv_methods[], attention_methods[], channel_norm_methods[], pad_methods[],
    size_methods[], sparse_methods[], function_methods[], search_methods[], vendor_methods[], window_last_methods[],
    conv_last_methods[], conv_channels_methods[], recurrent_methods[], grid_methods[], counting_methods[],
    matmul_bytes_methods[], fourier_methods[], members_methods[], linear_methods[], linear_blocked_methods[],
    dot_methods[], tensor_class_methods[], bags_methods[], bessel_methods[], orthogonal_methods[], qr_blocked_methods[],
    ctc_methods[], select_methods[], grid_backward_methods[], special_methods[], dlpack_methods[], resample_methods[],
    resample_bytes_methods[], fractional_methods[], instances_methods[];
// size.cpp
namespace mt {
extern PyTypeObject ShapeType;
bool ready_shape_type();
// function.cpp
extern PyTypeObject FunctionType, MethodType, OverridableType;
bool ready_function_types();
// tensor_class.cpp
extern PyTypeObject TensorMetaType;
bool ready_tensor_class();
}  // namespace mt

static std::vector<PyMethodDef>& all_methods() {
    static std::vector<PyMethodDef> methods;
    return methods;
}

static PyModuleDef module_def = {PyModuleDef_HEAD_INIT,
                                 "mindtorch_v2._native",
                                 "CPU storage and kernels.",
                                 -1,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr};

PyMODINIT_FUNC PyInit__native(void) {
    // The table must outlive the module: CPython keeps pointers into it.
    std::vector<PyMethodDef>& methods = all_methods();
    if (methods.empty()) {
        const PyMethodDef* families[] = {
            storage_methods,        allocator_methods,    threads_methods,      copy_methods,
            pointwise_methods,      reduce_methods,       nn_methods,           index_methods,
            matmul_methods,         matmul_bytes_methods, scalars_methods,      random_methods,
            window_methods,         optimizer_methods,    cpu_methods,          conv_methods,
            attention_methods,      channel_norm_methods, pad_methods,          size_methods,
            sparse_methods,         function_methods,     instances_methods,    search_methods,
            vendor_methods,         window_last_methods,  conv_last_methods,    conv_channels_methods,
            recurrent_methods,      grid_methods,         counting_methods,     fourier_methods,
            members_methods,        linear_methods,       tensor_class_methods, bags_methods,
            linear_blocked_methods, dot_methods,          bessel_methods,       orthogonal_methods,
            qr_blocked_methods,     ctc_methods,          select_methods,       grid_backward_methods,
            special_methods,        dlpack_methods,       resample_methods,     resample_bytes_methods,
            fractional_methods};
        for (const PyMethodDef* family : families)
            for (; family->ml_name; ++family) methods.push_back(*family);
        methods.push_back({nullptr, nullptr, 0, nullptr});
        module_def.m_methods = methods.data();
    }
    if (PyType_Ready(&StorageType) < 0 || !ready_shape_type() || !ready_function_types() || !ready_tensor_class())
        return nullptr;
    PyObject* module = PyModule_Create(&module_def);
    if (!module) return nullptr;
    if (PyModule_AddObjectRef(module, "Storage", reinterpret_cast<PyObject*>(&StorageType)) < 0 ||
        PyModule_AddObjectRef(module, "Shape", reinterpret_cast<PyObject*>(&ShapeType)) < 0 ||
        PyModule_AddObjectRef(module, "Function", reinterpret_cast<PyObject*>(&FunctionType)) < 0 ||
        PyModule_AddObjectRef(module, "Method", reinterpret_cast<PyObject*>(&MethodType)) < 0 ||
        PyModule_AddObjectRef(module, "Overridable", reinterpret_cast<PyObject*>(&OverridableType)) < 0 ||
        PyModule_AddObjectRef(module, "TensorMeta", reinterpret_cast<PyObject*>(&TensorMetaType)) < 0) {
        Py_DECREF(module);
        return nullptr;
    }
    const IntConstant* constants[] = {pointwise_constants, reduce_constants, nn_constants, index_constants,
                                      matmul_constants};
    for (const IntConstant* c : constants)
        for (; c->name; ++c)
            if (PyModule_AddIntConstant(module, c->name, c->value) < 0) {
                Py_DECREF(module);
                return nullptr;
            }
    return module;
}
