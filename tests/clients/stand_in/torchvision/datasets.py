"""Names of data sets, which nothing here reads."""


class ImageFolder:
    """A folder of images."""


class CIFAR10(ImageFolder): ...


class CIFAR100(ImageFolder): ...


class MNIST(ImageFolder): ...


class KMNIST(ImageFolder): ...


class FashionMNIST(ImageFolder): ...
