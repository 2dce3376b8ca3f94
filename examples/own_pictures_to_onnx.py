"""From a folder of pictures to a file for other programs.

    python examples/own_pictures_to_onnx.py PHOTOS        # PHOTOS/CLASS/*.png, or *.jpg

Trains a network that suits the pictures, asks it about one of them, and writes photos.onnx, which needs no rkcnn.
"""

import sys
from pathlib import Path

import onnxruntime

import rkcnn

photos = Path(sys.argv[1])
result = rkcnn.train(data=f"folder:{photos}", split=0.2)  # a fifth of the pictures is kept to test with
model = rkcnn.load(result.folder)

picture = next(path for path in sorted(photos.rglob("*")) if path.suffix.lower() in (".png", ".jpg", ".jpeg"))
(answer,) = model.predict(picture)
print(f"{picture}: {answer.label} with probability {answer.probability:.2f}")

exported = rkcnn.export(model, to="onnx", output="photos.onnx")
print(f"photos.onnx differs from the network by at most {exported.difference:.1g}")

pixels = model.prepare(picture).numpy()  # uint8 (1, channels, height, width): upright, scaled to cover, cropped
session = onnxruntime.InferenceSession("photos.onnx")
(probabilities,) = session.run(None, {session.get_inputs()[0].name: pixels})
print("onnxruntime:", {name: round(float(p), 2) for name, p in zip(model.classes, probabilities[0], strict=True)})
