"""What SciPy and scikit-learn compute here, against goldens: does the number of threads matter?

Each test computes what the projects' own suites compute, of a size at which OpenBLAS uses threads.
"""

import numpy as np
import pytest
from scipy import integrate, linalg, optimize, sparse
from scipy.sparse.linalg import LinearOperator, cg, eigsh

N = 300


@pytest.fixture
def matrix():
    return np.random.default_rng(20261121).normal(size=(N, N))


@pytest.fixture
def symmetric(matrix):
    return matrix @ matrix.T / N + np.eye(N)


def test_product(matrix, ciwrap):
    ciwrap.check(matrix @ matrix.T, rtol=1e-12, atol=1e-10)


def test_solve(symmetric, matrix, ciwrap):
    ciwrap.check(linalg.solve(symmetric, matrix[:, :40], assume_a="pos"), atol=1e-12)


def test_lu(matrix, ciwrap):
    permutation, lower, upper = linalg.lu(matrix, p_indices=True)
    ciwrap.check({"p": permutation, "l": lower, "u": upper}, bounds={"[lu]": 1e-10})


def test_eigenvalues(symmetric, ciwrap):
    """Eigenvalues are well conditioned; each eigenvector is known up to its sign only."""
    values, vectors = linalg.eigh(symmetric)
    signs = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(N)])
    ciwrap.check({"values": values, "vectors": vectors * signs}, atol=1e-8)


def test_singular_values(matrix, ciwrap):
    ciwrap.check(linalg.svdvals(matrix), "svdvals", atol=1e-11)


def test_least_squares(matrix, ciwrap):
    solution, _, rank, values = linalg.lstsq(matrix[:, :200], matrix[:, -1])
    ciwrap.check({"x": solution, "rank": rank, "s": values}, bounds={"x": 1e-12, "s": 1e-11})


def test_matrix_exponential(matrix, ciwrap):
    ciwrap.check(linalg.expm(matrix / N), atol=1e-13)


def test_conjugate_gradients(symmetric, matrix, ciwrap):
    """Stops at a residual, so how far iterates differ depends on that more than on rounding."""
    solution, code = cg(LinearOperator((N, N), lambda x: symmetric @ x), matrix[:, 0], rtol=1e-10)
    assert code == 0
    ciwrap.check(solution, atol=1e-9)


def test_lanczos(ciwrap):
    laplacian = sparse.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(4 * N, 4 * N), format="csr")
    values = eigsh(laplacian, k=6, sigma=0, v0=np.ones(4 * N), return_eigenvectors=False)
    ciwrap.check(np.sort(values), rtol=1e-9, atol=1e-15)


def test_stiff_equation(symmetric, ciwrap):
    """The step size is chosen by the error found, so rounding may change the number of steps."""
    rates = symmetric[:60, :60] * 20
    solution = integrate.solve_ivp(
        lambda _, y: -rates @ y, (0, 1), np.ones(60), method="BDF", rtol=1e-8, atol=1e-10
    )
    ciwrap.check(
        {"y": solution.y[:, -1], "steps": solution.t.size}, bounds={"y": 1e-10, "steps": 2}
    )


def test_minimum(symmetric, ciwrap):
    target = np.linspace(-1, 1, N)

    def cost(x):
        return 0.5 * x @ symmetric @ x - target @ x, symmetric @ x - target

    found = optimize.minimize(
        cost, np.zeros(N), jac=True, method="L-BFGS-B", options={"gtol": 1e-9}
    )
    ciwrap.check(found.x, atol=1e-6)


def test_principal_components(matrix, ciwrap):
    decomposition = pytest.importorskip("sklearn.decomposition")
    fitted = decomposition.PCA(n_components=20, svd_solver="full").fit(matrix)
    ciwrap.check(
        {"variance": fitted.explained_variance_, "components": fitted.components_}, atol=1e-10
    )


def test_clusters(matrix, ciwrap):
    """Labels are decisions: one point that changes its cluster is a difference, however small."""
    cluster = pytest.importorskip("sklearn.cluster")
    points = matrix[:, :8] + 6 * (np.arange(N) % 5)[:, None]
    fitted = cluster.KMeans(n_clusters=5, n_init=3, random_state=0).fit(points)
    ciwrap.check(
        {"centers": fitted.cluster_centers_, "labels": fitted.labels_}, bounds={"centers": 1e-11}
    )


@pytest.mark.ciwrap(repeat=5)
def test_the_product_is_the_same_each_time(matrix, ciwrap):
    """Within one process and one number of threads OpenBLAS adds in the same order every time."""
    ciwrap.check(matrix @ matrix.T)
