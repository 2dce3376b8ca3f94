"""Features of a trained network for another task, and gradients to the image.

A network learns the ten digits. A linear probe then asks what each of its periods knows about another question: does
the digit have a closed loop, as 0, 6, 8 and 9 have?
"""

import torch

import rkcnn

result = rkcnn.train("RKCNN-R-2_2@k=16,stem=odenet", data="mnist-mini", recipe="mini")
model = rkcnn.load(result.folder)
training, test = rkcnn.load_images("mnist-mini")


def probe(images, count):
    """Return the features of each period, averaged over pixels and with a 1 beside them, and the answers +1 and -1."""
    with torch.no_grad():
        maps = model.features(images.pixels[:count])
    answers = torch.isin(images.labels[:count], torch.tensor([0, 6, 8, 9])) * 2.0 - 1
    return [torch.cat([each.mean((2, 3)), torch.ones(len(each), 1)], 1) for each in maps], answers


(known, known_answers), (asked, asked_answers) = probe(training, 2000), probe(test, 1000)
for number, (x, x_test) in enumerate(zip(known, asked, strict=True), 1):
    weights = torch.linalg.lstsq(x, known_answers[:, None], driver="gelsd").solution
    wrong = ((x_test @ weights)[:, 0].sign() != asked_answers).float().mean()
    print(f"period {number}: {x.shape[1] - 1} features, a linear probe errs on {100 * wrong:.1f} % of the digits")

image = (test.pixels[:1] / 255).requires_grad_()  # fractions from 0 to 1
model.features(image)[-1].square().mean().backward()
row, column = divmod(int(image.grad[0, 0].abs().argmax()), image.shape[3])
print(f"the last period reacts most to the pixel in row {row}, column {column}")
