"""kornia: filters, colours, geometry, augmentation; a warp found by gradient descent; a network saved and loaded."""

import io
from typing import Any

from _stages import run, seeded, train


def importing(kept: dict[str, Any]) -> Any:
    import kornia

    return kornia.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    kept["x"] = torch.rand(2, 3, 16, 16)
    return kept["x"].sum()


def filters(kept: dict[str, Any]) -> Any:
    import kornia

    x = kept["x"]
    found = {
        "blur": kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
        "sobel": kornia.filters.sobel(x),
        "median": kornia.filters.median_blur(x, (3, 3)),
        "edges": kornia.filters.canny(x)[0],
        "dilated": kornia.morphology.dilation(x, x.new_ones(3, 3)),
        "ssim": kornia.metrics.ssim(x, x.flip(-1), 5),
    }
    return {k: v.mean((-1, -2)) for k, v in found.items()}


def colours(kept: dict[str, Any]) -> Any:
    import kornia

    x = kept["x"]
    names = ["rgb_to_grayscale", "rgb_to_hsv", "rgb_to_lab", "rgb_to_ycbcr", "rgb_to_luv"]
    return {name: getattr(kornia.color, name)(x).mean((-1, -2)) for name in names}


def training(kept: dict[str, Any]) -> Any:
    """The turn between two pictures."""
    torch = seeded()
    import kornia

    angle = torch.nn.Parameter(torch.tensor([0.0, 0.0]))
    target = kornia.geometry.rotate(kept["x"], torch.tensor([10.0, -5.0]))
    holder = torch.nn.ParameterList([angle])
    return train(holder, lambda: (kornia.geometry.rotate(kept["x"], angle) - target).pow(2).mean(), steps=6, rate=0.5)


def evaluate(kept: dict[str, Any]) -> Any:
    torch = seeded(3)
    import kornia
    import kornia.augmentation as K

    steps = K.AugmentationSequential(
        K.RandomHorizontalFlip(p=0.5), K.RandomAffine(15.0, p=1.0), K.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0)
    )
    points = torch.rand(1, 6, 2)
    moved = points * 2 + 1
    return {
        "augmented": steps(kept["x"]).mean((-1, -2)),
        "homography": kornia.geometry.find_homography_dlt(points, moved),
        "corners": kornia.feature.harris_response(kept["x"][:, :1]).sum((-1, -2)),
    }


def save(kept: dict[str, Any]) -> Any:
    torch = seeded(4)
    import kornia

    def make() -> Any:
        return torch.nn.Sequential(kornia.filters.GaussianBlur2d((3, 3), (1.0, 1.0)), torch.nn.Conv2d(3, 2, 3))

    model, file = make(), io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    again = make()
    again.load_state_dict(torch.load(file))
    with torch.no_grad():
        assert (again(kept["x"]) == model(kept["x"])).all()
        return again(kept["x"]).mean((-1, -2))


run(importing, build, filters, colours, training, evaluate, save)
