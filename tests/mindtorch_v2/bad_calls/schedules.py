"""Schedulers, averaged models, and the tools of `torch.testing` and `torch.quasirandom`."""
from __future__ import annotations

from typing import Any

from ._case import Case


def param(torch: Any) -> dict[str, Any]:
    return dict(p=torch.ones(2, requires_grad=True))


def pair(torch: Any) -> dict[str, Any]:
    return dict(a=torch.ones(2, 3), b=torch.zeros(2, 3))


def sgd(torch: Any, v: Any) -> Any:
    return torch.optim.SGD([v.p], lr=0.1)


def sched(torch: Any) -> Any:
    return torch.optim.lr_scheduler


def swa(torch: Any) -> Any:
    return torch.optim.swa_utils


def halves(epoch: int) -> float:
    return 0.5**epoch


CASES: list[Case] = [
    # schedulers
    Case("lr_not_optimizer", param, lambda torch, v: sched(torch).StepLR(v.p, 3),
         "TypeError", "Tensor is not an Optimizer"),
    Case("lr_lambda_not_optimizer", param, lambda torch, v: sched(torch).LambdaLR([v.p], halves),
         "AttributeError", "'list' object has no attribute 'param_groups'"),
    Case("lr_plateau_not_optimizer", param, lambda torch, v: sched(torch).ReduceLROnPlateau(3),
         "TypeError", "int is not an Optimizer"),
    Case("lr_cyclic_not_optimizer", param, lambda torch, v: sched(torch).CyclicLR("sgd", 0.1, 0.2),
         "TypeError", "str is not an Optimizer"),
    Case("lr_onecycle_not_optimizer", param, lambda torch, v: sched(torch).OneCycleLR(None, 0.1, 10),
         "TypeError", "NoneType is not an Optimizer"),
    Case("lr_resume_without_initial", param,
         lambda torch, v: sched(torch).ExponentialLR(sgd(torch, v), 0.9, last_epoch=4),
         "KeyError",
         '"param \'initial_lr\' is not specified in param_groups[0] when resuming scheduler with last_epoch >= '
         "0.\\nThis typically happens when:\\n1. You're trying to resume training from a checkpoint but haven't "
         "properly loaded the optimizer state\\n2. You're using last_epoch >= 0 for a fresh training run (not "
         'recommended)"'),
    Case("lr_lambda_count", param, lambda torch, v: sched(torch).LambdaLR(sgd(torch, v), [halves, halves]),
         "ValueError", "Expected 1 lr_lambdas, but got 2"),
    Case("lr_multiplicative_count", param, lambda torch, v: sched(torch).MultiplicativeLR(sgd(torch, v), []),
         "ValueError", "Expected 1 lr_lambdas, but got 0"),
    Case("lr_multiplicative_callable", param, lambda torch, v: sched(torch).MultiplicativeLR(sgd(torch, v), 0.5),
         "TypeError", "lr_lambda should be a function, but got float"),
    Case("lr_lambda_callable", param, lambda torch, v: sched(torch).LambdaLR(sgd(torch, v), 0.5),
         "TypeError", "'float' object is not callable"),
    Case("lr_step_size_missing", param, lambda torch, v: sched(torch).StepLR(sgd(torch, v)),
         "TypeError", "StepLR.__init__() missing 1 required positional argument: 'step_size'"),
    Case("lr_verbose_gone", param, lambda torch, v: sched(torch).StepLR(sgd(torch, v), 3, verbose=True),
         "TypeError", "StepLR.__init__() got an unexpected keyword argument"),
    Case("lr_multistep_number", param, lambda torch, v: sched(torch).MultiStepLR(sgd(torch, v), 3),
         "TypeError", "'int' object is not iterable"),
    Case("lr_constant_factor", param, lambda torch, v: sched(torch).ConstantLR(sgd(torch, v), factor=1.5),
         "ValueError", "Constant multiplicative factor expected to be between 0 and 1."),
    Case("lr_constant_negative", param, lambda torch, v: sched(torch).ConstantLR(sgd(torch, v), factor=-0.5),
         "ValueError", "Constant multiplicative factor expected to be between 0 and 1."),
    Case("lr_linear_start", param, lambda torch, v: sched(torch).LinearLR(sgd(torch, v), start_factor=0),
         "ValueError", "Starting multiplicative factor expected to be greater than 0 and less or equal to 1."),
    Case("lr_linear_end", param, lambda torch, v: sched(torch).LinearLR(sgd(torch, v), end_factor=1.5),
         "ValueError", "Ending multiplicative factor expected to be between 0 and 1."),
    Case("lr_plateau_factor", param, lambda torch, v: sched(torch).ReduceLROnPlateau(sgd(torch, v), factor=1.0),
         "ValueError", "Factor should be < 1.0."),
    Case("lr_plateau_mode", param, lambda torch, v: sched(torch).ReduceLROnPlateau(sgd(torch, v), mode="middle"),
         "ValueError", "mode middle is unknown!"),
    Case("lr_plateau_threshold_mode", param,
         lambda torch, v: sched(torch).ReduceLROnPlateau(sgd(torch, v), threshold_mode="x"),
         "ValueError", "threshold mode x is unknown!"),
    Case("lr_plateau_min_lr", param, lambda torch, v: sched(torch).ReduceLROnPlateau(sgd(torch, v), min_lr=[0.1, 0.2]),
         "ValueError", "expected 1 min_lrs, got 2"),
    Case("lr_plateau_no_metric", param, lambda torch, v: sched(torch).ReduceLROnPlateau(sgd(torch, v)).step(),
         "TypeError", "ReduceLROnPlateau.step() missing 1 required positional argument: 'metrics'"),
    Case("lr_plateau_metric", param, lambda torch, v: sched(torch).ReduceLROnPlateau(sgd(torch, v)).step("low"),
         "ValueError", "could not convert string to float: 'low'"),
    Case("lr_plateau_metric_tensor", param, lambda torch, v: sched(torch).ReduceLROnPlateau(sgd(torch, v)).step(v.p),
         "ValueError", "only one element tensors can be converted to Python scalars"),
    Case("lr_restarts_zero", param, lambda torch, v: sched(torch).CosineAnnealingWarmRestarts(sgd(torch, v), 0),
         "ValueError", "Expected positive integer T_0, but got 0"),
    Case("lr_restarts_fraction", param, lambda torch, v: sched(torch).CosineAnnealingWarmRestarts(sgd(torch, v), 2.5),
         "ValueError", "Expected positive integer T_0, but got 2.5"),
    Case("lr_restarts_mult", param,
         lambda torch, v: sched(torch).CosineAnnealingWarmRestarts(sgd(torch, v), 5, T_mult=0),
         "ValueError", "Expected integer T_mult >= 1, but got 0"),
    Case("lr_restarts_eta_min", param,
         lambda torch, v: sched(torch).CosineAnnealingWarmRestarts(sgd(torch, v), 5, eta_min="0"),
         "ValueError", "Expected float or int eta_min, but got 0 of type <class 'str'>"),
    Case("lr_restarts_epoch", param,
         lambda torch, v: sched(torch).CosineAnnealingWarmRestarts(sgd(torch, v), 5).step(-1),
         "ValueError", "Expected non-negative epoch, but got -1"),
    Case("lr_cyclic_lengths", param, lambda torch, v: sched(torch).CyclicLR(sgd(torch, v), [0.1, 0.2], 0.3),
         "ValueError",
         "base_lr must have the same length as optimizer.param_groups. base_lr has 2 values, param_groups has 1."),
    Case("lr_cyclic_max_lengths", param, lambda torch, v: sched(torch).CyclicLR(sgd(torch, v), 0.1, [0.3, 0.4]),
         "ValueError",
         "max_lr must have the same length as optimizer.param_groups. max_lr has 2 values, param_groups has 1."),
    Case("lr_cyclic_mode", param, lambda torch, v: sched(torch).CyclicLR(sgd(torch, v), 0.1, 0.3, mode="square"),
         "ValueError", "mode is invalid and scale_fn is None"),
    Case("lr_cyclic_no_momentum", param, lambda torch, v: sched(torch).CyclicLR(torch.optim.Adagrad([v.p]), 0.1, 0.3),
         "ValueError", "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"),
    Case("lr_onecycle_steps_missing", param, lambda torch, v: sched(torch).OneCycleLR(sgd(torch, v), 0.1),
         "ValueError", "You must define either total_steps OR (epochs AND steps_per_epoch)"),
    Case("lr_onecycle_steps_half", param, lambda torch, v: sched(torch).OneCycleLR(sgd(torch, v), 0.1, epochs=3),
         "ValueError", "You must define either total_steps OR (epochs AND steps_per_epoch)"),
    Case("lr_onecycle_steps_zero", param, lambda torch, v: sched(torch).OneCycleLR(sgd(torch, v), 0.1, total_steps=0),
         "ValueError", "Expected positive integer total_steps, but got 0"),
    Case("lr_onecycle_steps_fraction", param,
         lambda torch, v: sched(torch).OneCycleLR(sgd(torch, v), 0.1, total_steps=1.5),
         "ValueError", "Expected positive integer total_steps, but got 1.5"),
    Case("lr_onecycle_epochs", param,
         lambda torch, v: sched(torch).OneCycleLR(sgd(torch, v), 0.1, epochs=-1, steps_per_epoch=3),
         "ValueError", "Expected positive integer epochs, but got -1"),
    Case("lr_onecycle_per_epoch", param,
         lambda torch, v: sched(torch).OneCycleLR(sgd(torch, v), 0.1, epochs=2, steps_per_epoch=0.5),
         "ValueError", "Expected positive integer steps_per_epoch, but got 0.5"),
    Case("lr_onecycle_pct", param, lambda torch, v: sched(torch).OneCycleLR(sgd(torch, v), 0.1, 10, pct_start=2.0),
         "ValueError", "Expected float between 0 and 1 pct_start, but got 2.0"),
    Case("lr_onecycle_pct_int", param, lambda torch, v: sched(torch).OneCycleLR(sgd(torch, v), 0.1, 10, pct_start=1),
         "ValueError", "Expected float between 0 and 1 pct_start, but got 1"),
    Case("lr_onecycle_strategy", param,
         lambda torch, v: sched(torch).OneCycleLR(sgd(torch, v), 0.1, 10, anneal_strategy="step"),
         "ValueError", "anneal_strategy must be one of 'cos' or 'linear', instead got step"),
    Case("lr_onecycle_no_momentum", param,
         lambda torch, v: sched(torch).OneCycleLR(torch.optim.Adagrad([v.p]), 0.1, 10),
         "ValueError", "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"),
    Case("lr_onecycle_too_far", param,
         lambda torch, v: [s.step() for s in [sched(torch).OneCycleLR(sgd(torch, v), 0.1, 2)] for _ in range(3)],
         "ValueError", "Tried to step 3 times. The specified number of total steps is 2"),
    Case("lr_sequential_none", param, lambda torch, v: sched(torch).SequentialLR(sgd(torch, v), [], []),
         "ValueError", "SequentialLR expects at least one scheduler, but got no scheduler."),
    Case("lr_sequential_milestones", param,
         lambda torch, v: (lambda o: sched(torch).SequentialLR(o, [sched(torch).StepLR(o, 2)], [3]))(sgd(torch, v)),
         "ValueError",
         "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
         "points, but got number of schedulers 1 and the number of milestones to be equal to 1"),
    Case("lr_sequential_plateau", param,
         lambda torch, v: (lambda o: sched(torch).SequentialLR(o, [sched(torch).ReduceLROnPlateau(
             o)], []))(sgd(torch, v)),
         "ValueError",
         "SequentialLR does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
         "specified when calling `step`, but got one at index 0 in the given schedulers sequence."),
    Case("lr_sequential_part", param, lambda torch, v: sched(torch).SequentialLR(sgd(torch, v), [3], []),
         "TypeError", "SequentialLR at index 0 should have `optimizer` as its attribute."),
    Case("lr_sequential_epoch", param,
         lambda torch, v: (lambda o: sched(torch).SequentialLR(o, [sched(torch).StepLR(o, 2)], []).step(
             3))(sgd(torch, v)),
         "TypeError", "step() takes another number of arguments"),
    Case("lr_chained_none", param, lambda torch, v: sched(torch).ChainedScheduler([]),
         "ValueError", "ChainedScheduler expects at least one scheduler to be chained, but got no scheduler."),
    Case("lr_chained_other_optimizer", param,
         lambda torch, v: sched(torch).ChainedScheduler([sched(torch).StepLR(sgd(torch, v), 2), sched(
             torch).StepLR(sgd(torch, v), 2)]),
         "ValueError",
         "ChainedScheduler expects all schedulers to belong to the same optimizer, but got scheduler StepLR at "
         "index 1 has SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n    "
         "fused: None\n    initial_lr: 0.1\n    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: "
         "False\n    weight_decay: 0\n), which is different from SGD."),
    Case("lr_chained_part", param, lambda torch, v: sched(torch).ChainedScheduler([3]),
         "AttributeError", "'int' object has no attribute 'optimizer'"),
    Case("lr_base_get_lr", param, lambda torch, v: sched(torch).LRScheduler(sgd(torch, v)),
         "NotImplementedError", ""),
    Case("lr_load_lambda_state", param,
         lambda torch, v: sched(torch).LambdaLR(sgd(torch, v), halves).load_state_dict({}),
         "KeyError", "'lr_lambdas'"),
    Case("lr_group_added", param,
         lambda torch, v: (lambda s: (s.optimizer.add_param_group(dict(params=torch.ones(1))), s.step(
             )))(sched(torch).LambdaLR(sgd(torch, v), halves)),
         "ValueError", "zip() argument 2 is shorter than argument 1"),
    # averages
    Case("swa_decay", param, lambda torch, v: swa(torch).get_ema_avg_fn(1.5),
         "ValueError", "Invalid decay value 1.5 provided. Please provide a value in [0,1] range."),
    Case("swa_decay_negative", param, lambda torch, v: swa(torch).get_ema_multi_avg_fn(-0.1),
         "ValueError", "Invalid decay value -0.1 provided. Please provide a value in [0,1] range."),
    Case("swa_two_functions", param,
         lambda torch, v: swa(torch).AveragedModel(torch.nn.Linear(1, 1), avg_fn=swa(torch).get_swa_avg_fn(
             ), multi_avg_fn=swa(torch).get_swa_multi_avg_fn()),
         "AssertionError", "Only one of avg_fn and multi_avg_fn should be provided"),
    Case("swa_lr_lengths", param, lambda torch, v: swa(torch).SWALR(sgd(torch, v), [0.1, 0.2]),
         "ValueError",
         "swa_lr must have the same length as optimizer.param_groups. swa_lr has 2 values, param_groups has 1."),
    Case("swa_lr_strategy", param, lambda torch, v: swa(torch).SWALR(sgd(torch, v), 0.1, anneal_strategy="step"),
         "ValueError", "anneal_strategy must be one of 'cos' or 'linear', instead got step"),
    Case("swa_lr_epochs", param, lambda torch, v: swa(torch).SWALR(sgd(torch, v), 0.1, anneal_epochs=-1),
         "ValueError", "anneal_epochs must be equal or greater than 0, got -1"),
    Case("swa_lr_epochs_fraction", param, lambda torch, v: swa(torch).SWALR(sgd(torch, v), 0.1, anneal_epochs=1.5),
         "ValueError", "anneal_epochs must be equal or greater than 0, got 1.5"),
    Case("swa_other_model", param,
         lambda torch, v: (lambda a: a.update_parameters(torch.nn.BatchNorm1d(2)))(swa(torch).AveragedModel(
             torch.nn.Linear(2, 2))),
         "ValueError", "zip() argument 2 is longer than argument 1"),
    Case("swa_other_shape", param,
         lambda torch, v: (lambda a: a.update_parameters(torch.nn.Linear(3, 2)))(swa(torch).AveragedModel(
             torch.nn.Linear(2, 2))),
         "RuntimeError", "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1"),
    Case("swa_averaged_integers", param,
         lambda torch, v: swa(torch).get_swa_multi_avg_fn()([torch.ones(2, dtype=torch.int64)], [torch.ones(
             2, dtype=torch.int64)], torch.tensor(1)),
         "RuntimeError",
         "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
         "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value "
         "* torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
         "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value "
         "* tensor1 / tensor2), for all dtypes."),
    # comparisons
    Case("close_values", pair, lambda torch, v: torch.testing.assert_close(v.a, v.b),
         "AssertionError",
         "Tensor-likes are not close!\n\nMismatched elements: 6 / 6 (100.0%)\nGreatest absolute difference: 1.0 at "
         "index (0, 0) (up to 1e-05 allowed)\nGreatest relative difference: inf at index (0, 0) (up to 1.3e-06 "
         "allowed)"),
    Case("close_shape", pair, lambda torch, v: torch.testing.assert_close(v.a, v.b[0]),
         "AssertionError", "The values for attribute 'shape' do not match: torch.Size([2, 3]) != torch.Size([3])."),
    Case("close_dtype", pair, lambda torch, v: torch.testing.assert_close(v.a, v.b.double()),
         "AssertionError", "The values for attribute 'dtype' do not match: torch.float32 != torch.float64."),
    Case("close_stride", pair,
         lambda torch, v: torch.testing.assert_close(v.a, torch.ones(3, 2).t(), check_stride=True),
         "AssertionError", "The values for attribute 'stride()' do not match: (3, 1) != (1, 2)."),
    Case("close_rtol_alone", pair, lambda torch, v: torch.testing.assert_close(v.a, v.a, rtol=0.1),
         "ValueError", "Both 'rtol' and 'atol' must be either specified or omitted, but got no atol."),
    Case("close_lengths", pair, lambda torch, v: torch.testing.assert_close([v.a], [v.a, v.a]),
         "AssertionError", "The length of the sequences mismatch: 1 != 2"),
    Case("close_keys", pair, lambda torch, v: torch.testing.assert_close({"a": v.a}, {"b": v.a}),
         "AssertionError",
         "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\nAdditional keys in the "
         "actual mapping: ['a']"),
    Case("close_item", pair, lambda torch, v: torch.testing.assert_close({"x": [v.a, v.b]}, {"x": [v.a, v.a]}),
         "AssertionError",
         "Tensor-likes are not close!\n\nMismatched elements: 6 / 6 (100.0%)\nGreatest absolute difference: 1.0 at "
         "index (0, 0) (up to 1e-05 allowed)\nGreatest relative difference: 1.0 at index (0, 0) (up to 1.3e-06 "
         "allowed)\n\nThe failure occurred for item ['x'][1]"),
    Case("close_message", pair, lambda torch, v: torch.testing.assert_close(v.a, v.b, msg="not these"),
         "AssertionError", "not these"),
    Case("close_types", pair, lambda torch, v: torch.testing.assert_close(v.a, "text"),
         "TypeError", "No comparison pair was able to handle inputs of type <class 'torch.Tensor'> and <class 'str'>."),
    Case("close_number", pair, lambda torch, v: torch.testing.assert_close(1, 1.5, check_dtype=False),
         "AssertionError",
         "Scalars are not close!\n\nExpected 1.5 but got 1.\nAbsolute difference: 0.5 (up to 1e-07 "
         "allowed)\nRelative difference: 0.3333333333333333 (up to 1e-07 allowed)"),
    Case("close_none", pair, lambda torch, v: torch.testing.assert_close(None, v.a[0, 0].item()),
         "AssertionError", "None mismatch: None is not 1.0"),
    Case("close_objects", pair, lambda torch, v: torch.testing.assert_close({1}, {1}),
         "TypeError", "No comparison pair was able to handle inputs of type <class 'set'> and <class 'set'>."),
    Case("close_positional", pair, lambda torch, v: torch.testing.assert_close(v.a, v.b, True),
         "TypeError", "assert_close() takes another number of arguments"),
    Case("close_tolerance_type", pair, lambda torch, v: torch.testing.assert_close(v.a, v.b, rtol="a", atol=0.1),
         "RuntimeError",
         "Comparing\n\nTensorLikePair(\n    id=(),\n    actual=tensor([[1., 1., 1.],\n        [1., 1., 1.]]),\n    "
         "expected=tensor([[0., 0., 0.],\n        [0., 0., 0.]]),\n    rtol=a,\n    atol=0.1,\n    "
         "equal_nan=False,\n    check_device=True,\n    check_dtype=True,\n    check_layout=True,\n    "
         "check_stride=False,\n)\n\nresulted in the unexpected exception above. If you are a user and see this "
         "message during normal operation please file an issue at https://github.com/pytorch/pytorch/issues. If you "
         "are a developer and working on the comparison functions, please except the previous error and raise an "
         "expressive `ErrorMeta` instead."),
    Case("allclose_values", pair, lambda torch, v: torch.testing.assert_allclose(v.a, 3),
         "AssertionError", "The values for attribute 'shape' do not match: torch.Size([2, 3]) != torch.Size([])."),
    Case("make_no_dtype", pair, lambda torch, v: torch.testing.make_tensor(2, device="cpu"),
         "TypeError", "make_tensor() missing 1 required keyword-only argument: 'dtype'"),
    Case("make_bounds", pair,
         lambda torch, v: torch.testing.make_tensor(2, dtype=torch.float32, device="cpu", low=3, high=1),
         "ValueError", "`low` must be less than `high`, but got 3 >= 1"),
    Case("make_nan", pair,
         lambda torch, v: torch.testing.make_tensor(2, dtype=torch.float32, device="cpu", low=float("nan")),
         "ValueError", "`low` and `high` cannot be NaN, but got low=nan and high=9"),
    Case("make_beyond", pair,
         lambda torch, v: torch.testing.make_tensor(2, dtype=torch.int8, device="cpu", low=200, high=300),
         "ValueError",
         "The value interval specified by `low` and `high` is [200, 300), but torch.int8 only supports [-128, 128)"),
    Case("make_grad", pair,
         lambda torch, v: torch.testing.make_tensor(2, dtype=torch.int64, device="cpu", requires_grad=True),
         "ValueError",
         "`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype=torch.int64"),
    Case("make_formats", pair,
         lambda torch, v: torch.testing.make_tensor(2, 2, dtype=torch.float32, device="cpu",
             noncontiguous=True, memory_format=torch.contiguous_format),
         "ValueError",
         "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got noncontiguous=True and "
         "memory_format=torch.contiguous_format"),
    Case("make_shape", pair, lambda torch, v: torch.testing.make_tensor("a", dtype=torch.float32, device="cpu"),
         "TypeError",
         "empty(): argument 'size' (position 1) must be tuple of ints, but found element of type str at pos 0"),
    Case("make_negative", pair, lambda torch, v: torch.testing.make_tensor(-1, dtype=torch.float32, device="cpu"),
         "RuntimeError", "Trying to create tensor with negative dimension -1: [-1]"),
    Case("filecheck_missing", pair, lambda torch, v: torch.testing.FileCheck().check("x").run("a\nb\n"),
         "RuntimeError",
         'Expected to find "x" but did not find it\nSearched string:\na\n~ <--- HERE\nb\nFrom CHECK: x\n'),
    Case("filecheck_none", pair, lambda torch, v: torch.testing.FileCheck().run("a"),
         "RuntimeError", "No checks have been added to this instance ofFilecheck! Check for bad input."),
    Case("filecheck_instruction", pair, lambda torch, v: torch.testing.FileCheck().run("# CHECK-LATER: a\n", "a"),
         "RuntimeError", "Could not parse check at:\n# CHECK-LATER: a\n       ~ <--- HERE\nCheck for bad input."),
    Case("sobol_dimension", pair, lambda torch, v: torch.quasirandom.SobolEngine(0),
         "ValueError", "Supported range of dimensionality for SobolEngine is [1, 21201]"),
    Case("sobol_base2", pair, lambda torch, v: torch.quasirandom.SobolEngine(2).fast_forward(3).draw_base2(2),
         "ValueError",
         "The balance properties of Sobol' points require n to be a power of 2. 3 points have been previously "
         "generated, then: n=3+2**2=7. If you still want to do this, please use 'SobolEngine.draw()' instead."),
    Case("sobol_dtype", pair, lambda torch, v: torch.quasirandom.SobolEngine(2).draw(2, dtype=torch.float16),
         "NotImplementedError", '"_sobol_engine_draw" not implemented for \'Half\''),
]
