"""Two processes write to one field in shared memory; a pickle keeps layout, labels and halo."""

import multiprocessing
import pickle

import dlfield as dl


def fill(part, value):
    part[...] = value


if __name__ == "__main__":
    field = dl.zeros((6, 5, 4), backend="gt:cpu_ifirst", halo=(1, 1, 0)).share()
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=fill, args=(part, value)) for value, part in enumerate((field[:3], field[3:]), 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (field[:3].sum(), field[3:].sum()) == (60.0, 120.0)
    again = pickle.loads(pickle.dumps(field.copy()))
    print(again.strides == field.strides, again.dims, again.halo, float(again.max()))
