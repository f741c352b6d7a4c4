"""A field through a small convolution of PyTorch, with gradients, and the result as a field again."""

import torch

import dlfield as dl

field = dl.ones((1, 2, 8, 6), "float32", dims=("time", "K", "I", "J"))
field[0, 1, 3:5, 2:4] = 4.0
conv = torch.nn.Conv2d(2, 1, kernel_size=3, padding=1)
optimizer = torch.optim.SGD(conv.parameters(), lr=1e-3)

x = dl.as_torch(field).requires_grad_()
for _ in range(5):
    optimizer.zero_grad()
    loss = ((conv(x) - 1.0) ** 2).mean()
    loss.backward()
    optimizer.step()

gradient = dl.asarray(x.grad, like=field)
result = dl.from_dlpack(conv(x).detach(), dims=("time", "K", "I", "J"))
print(gradient.dims, float(gradient.max()), result.shape, x.data_ptr() == field.ptr)
