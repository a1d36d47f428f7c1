# SPDX-License-Identifier: Apache-2.0
"""Links along predicted motion. Those of trackpy 0.7's test_predict.py that speak of results are here, adapted:

  - test_null_predict, test_fail_predict: without prediction
  - test_simple_predict, test_big_predict, test_predict_newparticles, test_predict_memory: both predictors
  - test_initial_guess: one velocity in place of samples at points; a wrong one fails
  - test_pos_columns: two particles that cross; the order of columns cannot be chosen here
  - frames that are there in trackpy are successive, whatever their numbers; here `memory` bridges the numbers between
  - ChannelPredict is not there; its channels of one velocity are linked by both predictors
Left out: test_subnet_fail (larger groups are solved), instrumented predictors, other entry points of trackpy.
"""
import numpy as np
import pytest

import cleave


def frame(n, side=3, per_frame=(-1.0, 1.0)):
    y, x = np.mgrid[:side, :side] * 100.0
    return np.stack([np.full(side * side, n), y.ravel() + (n - 100) * per_frame[0],
                     x.ravel() + (n - 100) * per_frame[1]], axis=1)


def lengths(frames, search, **options):
    particle = cleave.link(np.concatenate(frames), search, **options)
    return np.bincount(particle)


BOTH = pytest.mark.parametrize("predict", ["velocity", "drift"])


def test_no_motion_is_no_prediction():
    assert (lengths([frame(0), frame(25)], 45, memory=24) == 2).all()
    assert not (lengths([frame(0), frame(25), frame(65)], 45, memory=49) == 3).all()


@BOTH
@pytest.mark.parametrize("flow", [(-1.0, 1.0), (0.0, 1.4142), (1.4142, 0.0)])
def test_motion_that_goes_on_is_followed(predict, flow):
    frames = [frame(0, 3, flow), frame(25, 3, flow), frame(65, 3, flow)]
    assert (lengths(frames, 45, memory=49, predict=predict) == 3).all()
    wide = [frame(0, 10, flow), frame(25, 10, flow), frame(75, 10, flow)]
    assert (lengths(wide, 45, memory=49, predict=predict) == 3).all()


@BOTH
def test_new_particles_have_the_velocity_of_the_others(predict):
    found = lengths([frame(0), frame(25), frame(65, 4), frame(105, 4)], 45, memory=39, predict=predict)
    assert not (found == 1).any()


@BOTH
def test_a_particle_that_was_unseen_is_expected_where_it_has_gone(predict):
    frames = [frame(n) for n in (0, 25, 65, 105, 145)]
    assert (lengths(frames, 45, memory=39, predict=predict) == 5).all()
    frames[3] = np.delete(frames[3], 5, axis=0)
    assert sorted(lengths(frames, 45, memory=39, predict=predict)) == [1, 3] + [5] * 8
    assert sorted(lengths(frames, 45, memory=79, predict=predict)) == [4] + [5] * 8


@BOTH
def test_the_first_velocity_can_be_given(predict):
    frames = [frame(0), frame(100), frame(200)]
    assert (lengths(frames, 45, memory=99, predict=predict, velocity=(-1, 1)) == 3).all()
    assert not (lengths(frames, 45, memory=99, predict=predict, velocity=(1, -1)) == 3).all()
    deep = [np.insert(f, 1, 7.0, axis=1) for f in frames]
    assert (lengths(deep, 45, memory=99, predict=predict, velocity=(0, -1, 1)) == 3).all()
    assert not (lengths(deep, 45, memory=99, predict=predict, velocity=(1, -1, 1)) == 3).all()


def test_particles_that_cross_keep_their_ways():
    spots = {"frame": [1, 2, 3, 4, 1, 2, 3, 4], "x": [0, 10, 20, 30, 10, 15, 20, 25], "y": [0, 10, 20, 30, 30, 20, 10, 0]}
    assert cleave.link(spots, 100, predict="velocity").tolist() == [0] * 4 + [1] * 4


def drifting(seed, drift, shear=0.0, count=400, frames=60):
    """Brownian motion in a flow: rows of frame, z, y, x, and who is who."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(0, 300, (count, 3)) * (0.2, 1, 1)
    rows, who = [], []
    for n in range(frames):
        seen = rng.uniform(size=count) > 0.05
        rows.append(np.insert(place[seen], 0, n, axis=1))
        who.append(np.flatnonzero(seen))
        place += rng.normal(0, 0.7, place.shape)
        place[:, 1] += drift + shear * place[:, 2]
    return np.concatenate(rows), np.concatenate(who)


def right_links(particle, rows, who):
    """The share of true links (one frame apart) that were found."""
    last, good, all_links = {}, 0, 0
    for number, n, name in zip(particle, rows[:, 0], who):
        if name in last and last[name][0] == n - 1:
            all_links += 1
            good += last[name][1] == number
        last[name] = (n, number)
    return good / all_links


@pytest.mark.parametrize("predict,drift,shear", [("drift", 9.0, 0.0), ("velocity", 9.0, 0.0), ("velocity", 0.0, 0.03)])
def test_flows_are_followed(predict, drift, shear):
    rows, who = drifting(3, drift, shear)
    plain = cleave.link(rows, 6.0, memory=2)
    followed = cleave.link(rows, 6.0, memory=2, predict=predict, velocity=(drift, 0))
    assert right_links(followed, rows, who) > 0.97 and right_links(plain, rows, who) < 0.75


def test_the_order_of_the_input_does_not_matter():
    rows, _ = drifting(4, 5.0, 0.01, 100, 20)
    order = np.random.default_rng(1).permutation(len(rows))
    for predict in ("velocity", "drift"):
        want = cleave.link(rows, 8.0, memory=1, predict=predict)
        np.testing.assert_array_equal(cleave.link(rows[order], 8.0, memory=1, predict=predict), want[order])


def test_wrong_predictions_are_refused():
    with pytest.raises(cleave.ArgumentError, match="predict"):
        cleave.link([[0, 1, 1]], 2, predict="crystal ball")
    with pytest.raises(cleave.ArgumentError, match="guess_velocity"):
        cleave.link([[0, 1, 1]], 2, predict="drift", velocity=(float("nan"), 0))
    with pytest.raises(cleave.ShapeError, match="velocity"):
        cleave.link([[0, 1, 1]], 2, predict="drift", velocity=3.0)
