"""`torch.profiler._pattern_matcher`: importable; profiles are not searched for patterns."""

from __future__ import annotations

from .._unserved import offer as _offer

_offer(
    __name__,
    "report_all_anti_patterns input_dtypes input_shapes",
    "Pattern NamePattern ExtraCUDACopyPattern ForLoopIndexingPattern FP32MatMulPattern OptimizerSingleTensorPattern "
    "SynchronizedDataLoaderPattern GradNotSetToNonePattern Conv2dBiasFollowedByBatchNorm2dPattern "
    "MatMulDimInFP16Pattern",
    "{name}: records of a profile are not kept as a tree of events here; prof.events() has them",
)
