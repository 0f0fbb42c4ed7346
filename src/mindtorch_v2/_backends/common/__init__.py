"""What devices share: allocation from a rule's answer, views, in-place and `out=` forms, copies between devices."""
