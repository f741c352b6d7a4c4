//! Traversal of array views, compared with `ndarray`'s `indexed_iter`.

use dlfield::ndarray::{
    Array1, Array2, Array3, ArrayD, ArrayView1, ArrayView2, ArrayViewD, ArrayViewMut2, ArrayViewMutD, Axis, Ix3, IxDyn,
    ShapeBuilder, Slice, arr0, array, s,
};
use dlfield::traverse::{fold, for_each, for_each_run, zip, zip_runs};
use dlfield::{DType, Error, LayoutErrorKind, Preset, Spec, Tensor};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::strategies::{config, permutation};

/// A view: the shape of its array, what is taken of each dimension (first index, step), and the order of dimensions.
#[derive(Clone, Debug)]
struct View {
    shape: Vec<usize>,
    parts: Vec<(usize, isize)>,
    order: Vec<usize>,
}

impl View {
    /// Returns the array, whose elements count from 0 on in memory.
    fn array(&self) -> ArrayD<usize> {
        let len = self.shape.iter().product();
        ArrayD::from_shape_vec(IxDyn(&self.shape), (0..len).collect()).unwrap()
    }

    fn of<'a>(&self, mut array: ArrayViewMutD<'a, usize>) -> ArrayViewMutD<'a, usize> {
        for (axis, (first, step)) in self.parts.iter().enumerate() {
            let first = (*first).min(self.shape[axis]).cast_signed();
            array.slice_axis_inplace(Axis(axis), Slice::new(first, None, *step));
        }
        array.permuted_axes(IxDyn(&self.order))
    }

    /// Returns an array with a view like this one of the given shape.
    fn around(&self, wanted: &[usize]) -> (View, ArrayD<usize>) {
        let mut view = self.clone();
        for (axis, extent) in self.order.iter().zip(wanted) {
            let (first, step) = &mut view.parts[*axis];
            *first = if *extent == 0 { 0 } else { *first };
            let step = step.unsigned_abs();
            view.shape[*axis] = if *extent == 0 { 0 } else { *first + (extent - 1) * step + 1 };
        }
        let array = view.array();
        (view, array)
    }
}

fn view(ndim: usize) -> impl Strategy<Value = View> {
    let extent = prop_oneof![1 => Just(0usize), 2 => Just(1usize), 8 => 2usize..=5];
    let step = prop_oneof![4 => Just(1isize), 1 => Just(2), 1 => Just(3), 1 => Just(-1), 1 => Just(-2)];
    let order = permutation(ndim).prop_map(|axes| axes.iter().map(|axis| usize::try_from(*axis).unwrap()).collect());
    let part = prop_oneof![2 => Just(0usize), 1 => 1usize..=2];
    (vec(extent, ndim), vec((part, step), ndim), order).prop_map(|(shape, parts, order)| View { shape, parts, order })
}

fn any_view() -> impl Strategy<Value = View> {
    (0usize..=6).prop_flat_map(view)
}

/// Returns the elements by index, the slow way, in the order of their values.
fn expected(view: &ArrayViewD<'_, usize>) -> Vec<usize> {
    let mut elements: Vec<usize> = view.indexed_iter().map(|(_, element)| *element).collect();
    elements.sort_unstable();
    elements
}

/// Numbers the elements of a view by their index.
fn numbered(mut view: ArrayViewMutD<'_, usize>) {
    for (number, element) in view.iter_mut().enumerate() {
        *element = number;
    }
}

fn visited(view: ArrayViewD<'_, usize>) -> Vec<usize> {
    fold(view, Vec::new(), |mut elements, element| {
        elements.push(*element);
        elements
    })
}

proptest! {
    #![proptest_config(config(4))]

    #[test]
    fn every_element_is_visited_once_in_the_order_of_memory(view in any_view()) {
        let mut array = view.array();
        let view = view.of(array.view_mut());
        // The values count in memory, so those of any view have to come sorted.
        prop_assert_eq!(visited(view.view()), expected(&view.view()));
    }

    #[test]
    fn written_elements_are_those_of_the_view(view in any_view()) {
        let (mut array, mut naive) = (view.array(), view.array());
        for_each(view.of(array.view_mut()), |element| *element += 1000);
        view.of(naive.view_mut()).iter_mut().for_each(|element| *element += 1000);
        prop_assert_eq!(array, naive);
    }

    #[test]
    fn repeated_elements_are_visited_as_often_as_they_are_repeated(view in any_view(), repeats in vec(1usize..=3, 0..=2)) {
        let mut array = view.array();
        let view = view.of(array.view_mut());
        let shape: Vec<usize> = repeats.iter().chain(view.shape()).copied().collect();
        let mut repeated = view.broadcast(IxDyn(&shape)).unwrap();
        if !repeats.is_empty() {
            repeated.swap_axes(0, shape.len() - 1);
        }
        let mut found = visited(repeated.view());
        found.sort_unstable();
        prop_assert_eq!(found, expected(&repeated));
    }

    #[test]
    fn runs_have_the_elements_in_the_same_order(view in any_view()) {
        let mut array = view.array();
        let view = view.of(array.view_mut());
        let (mut runs, mut strides) = (Vec::new(), Vec::new());
        for_each_run(&view, |run: ArrayView1<'_, usize>| {
            let is_contiguous = run.windows(2).into_iter().all(|pair| pair[1] == pair[0] + 1);
            assert_eq!(run.as_slice().is_some(), is_contiguous, "{run:?}");
            strides.push((run.len(), run.strides()[0]));
            runs.extend(run.iter().copied());
        });
        prop_assert_eq!(runs, visited(view.view()));
        prop_assert!(strides.windows(2).all(|pair| pair[0] == pair[1]), "{:?}", strides);
    }

    #[test]
    fn whole_arrays_are_one_slice_however_they_are_turned(mut view in any_view(), turned in vec(any::<bool>(), 6)) {
        for ((first, step), turned) in view.parts.iter_mut().zip(turned) {
            (*first, *step) = (0, if turned { -1 } else { 1 });
        }
        let mut array = view.array();
        let len = array.len();
        let mut slices = Vec::new();
        for_each_run(view.of(array.view_mut()), |run| slices.push(run.into_slice().unwrap().len()));
        prop_assert_eq!(slices, if len == 0 { vec![] } else { vec![len] });
    }

    #[test]
    fn zipped_arrays_are_visited_at_the_same_index(
        (one, two, three) in (0usize..=5).prop_flat_map(|ndim| (view(ndim), view(ndim), view(ndim))),
    ) {
        let mut first = one.array();
        let shape = one.of(first.view_mut()).shape().to_vec();
        let ((two, mut second), (three, mut third)) = (two.around(&shape), three.around(&shape));
        numbered(one.of(first.view_mut()));
        numbered(two.of(second.view_mut()));
        let (first, second) = (one.of(first.view_mut()), two.of(second.view_mut()));
        prop_assert_eq!(first.shape(), second.shape());
        let mut naive = third.clone();
        naive_sums(&first.view(), three.of(naive.view_mut()));

        let (mut written, mut count) = (third.clone(), 0);
        zip((&first, second.view(), three.of(written.view_mut())), |(a, b, out)| {
            assert_eq!(a, b);
            *out = a + b;
            count += 1;
        }).unwrap();
        prop_assert_eq!((count, &written), (first.len(), &naive));

        zip_runs((&first, three.of(third.view_mut()), second.view()), |(a, mut out, b)| {
            assert_eq!(a, b);
            out.assign(&(&a + &b));
        }).unwrap();
        prop_assert_eq!(third, naive);

        let mut read = 0;
        zip((first, &second), |(a, b)| {
            assert_eq!(a, b);
            read += 1;
        }).unwrap();
        prop_assert_eq!(read, count);
    }
}

fn naive_sums(numbers: &ArrayViewD<'_, usize>, mut out: ArrayViewMutD<'_, usize>) {
    for (index, number) in numbers.indexed_iter() {
        out[index] = 2 * number;
    }
}

#[test]
fn written_arrays_are_visited_in_their_own_order() {
    let (c, mut f) = (Array2::<f64>::zeros((3, 4)), Array2::<f64>::zeros((3, 4).f()));
    let mut addresses = Vec::new();
    zip((&c, &mut f), |(_, out)| addresses.push(std::ptr::from_mut(out))).unwrap();
    assert!(addresses.is_sorted());
    zip_runs((&c, &mut f), |(inp, mut out)| {
        assert_eq!((inp.len(), inp.strides()), (3, &[4][..]));
        assert!(out.as_slice_mut().is_some());
    })
    .unwrap();
}

#[test]
fn a_repeated_array_does_not_decide_the_order() {
    let (row, field) = (Array1::<u8>::zeros(4), Array2::<u8>::zeros((3, 4)));
    let mut runs = 0;
    zip_runs((row.broadcast((3, 4)).unwrap(), &field), |(row, field)| {
        assert!(row.as_slice().is_some() && field.as_slice().is_some());
        runs += 1;
    })
    .unwrap();
    assert_eq!(runs, 3);
}

#[test]
fn arrays_of_other_ranks_types_and_storages_are_taken() {
    let shared = Array2::from_elem((2, 3), 1u8).into_shared();
    let (dynamic, scalar) = (Array2::from_elem((2, 3), 2.5f32).into_dyn(), arr0(7));
    let mut sum = 0.0;
    zip((&shared, &dynamic), |(a, b)| sum += f32::from(*a) * b).unwrap();
    assert_eq!(sum, 15.0);
    assert_eq!(fold(&scalar, 1, |sum, x| sum + x), 8);
    let mut texts = vec![String::from("a"), String::from("b")];
    for_each(&mut texts, |text| text.push('!'));
    assert_eq!(fold(&texts[..], String::new(), |all, text| all + text), "a!b!");
    assert_eq!(fold(&Array1::from(vec![(); 5]), 0, |count, ()| count + 1), 5);
}

#[test]
fn rows_that_overlap_are_read_at_each_index() {
    let numbers = [1usize, 2, 3, 4, 5, 6];
    let windows = ArrayView2::from_shape((4, 3).strides((1, 1)), &numbers).unwrap();
    let shifted = ArrayView2::from_shape((3, 4).strides((1, 1)), &numbers).unwrap();
    assert_eq!(fold(windows, Vec::new(), |seen, x| [seen, vec![*x]].concat()), [1, 2, 3, 2, 3, 4, 3, 4, 5, 4, 5, 6]);
    let (mut sums, mut rows) = (Array2::<usize>::zeros((3, 4)), Array2::from_shape_fn((4, 3), |(i, j)| 10 * i + j));
    zip((&mut sums, shifted.slice(s![..;-1, ..])), |(sum, x)| *sum += x).unwrap();
    assert_eq!(sums, array![[3, 4, 5, 6], [2, 3, 4, 5], [1, 2, 3, 4]]);
    zip_runs((windows, &mut rows), |(x, mut row)| row += &x).unwrap();
    assert_eq!(rows, array![[1, 3, 5], [12, 14, 16], [23, 25, 27], [34, 36, 38]]);
}

#[test]
fn extents_that_no_memory_holds_are_one_run() {
    let (shape, one) = ((1 << 31, 1 << 30), arr0(7u8));
    // A vector of elements without a size needs no memory.
    let mut empty = vec![(); 1 << 61];
    let mut nothing = ArrayViewMut2::from_shape(shape, &mut empty).unwrap();
    nothing.invert_axis(Axis(1));
    let mut runs = Vec::new();
    for_each_run(&mut nothing, |run| runs.push(run.len()));
    for_each_run(one.broadcast(shape).unwrap(), |run| runs.push(run.len()));
    zip_runs((one.broadcast(shape).unwrap(), nothing), |(sevens, run)| {
        assert_eq!((sevens[(1 << 61) - 1], sevens.len()), (7, run.len()));
        runs.push(run.len());
    })
    .unwrap();
    assert_eq!(runs, [1 << 61; 3]);
}

#[test]
fn eight_arrays_are_visited_together() {
    let a = Array3::from_shape_fn((4, 3, 5), |(i, j, k)| i + 10 * j + 100 * k);
    let mut out = Array3::zeros((4, 3, 5).f());
    zip((&a, &a, &a, &a, &a, &a, &a, &mut out), |(a, b, c, d, e, f, g, out)| *out = a + b + c + d + e + f + g).unwrap();
    assert_eq!(out, a.mapv(|x| 7 * x));
}

#[test]
fn sixty_four_dimensions_are_visited() {
    let shape: Vec<usize> = (0..64).map(|axis| if axis % 5 == 0 { 3 } else { 1 }).collect();
    // Every other element along nine of the thirteen, so that nothing can be merged.
    let mut field: ArrayD<u32> = ArrayD::zeros(IxDyn(&shape));
    let mut view = field.view_mut();
    for axis in (0..64).step_by(5) {
        let part = if axis < 45 { Slice::new(0, None, 2) } else { Slice::new(0, Some(1), 1) };
        view.slice_axis_inplace(Axis(axis), part);
    }
    assert_eq!(view.len(), 512);
    let mut runs = 0;
    for_each_run(&view, |run| runs += run.len());
    assert_eq!(runs, 512);
    for_each(view, |x| *x += 1);
    assert_eq!((field.sum(), field.iter().copied().max()), (512, Some(1)));
}

#[test]
fn another_shape_is_an_error_that_names_the_array() {
    let (a, mut b) = (Array2::<f64>::zeros((3, 4)), Array3::<f64>::zeros((3, 4, 1)));
    let error = zip((&a, &a, &mut b), |_| panic!("visited")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "shape: expected (3, 4), that of the first array, got (3, 4, 1) for the array at position 2; slice or broadcast the \
         arrays first"
    );
    let transposed = zip_runs((&a, a.t()), |_| panic!("visited"));
    assert!(matches!(transposed, Err(Error::Layout(error)) if error.kind() == LayoutErrorKind::Mismatch));
}

#[test]
fn references_outlive_the_traversal() {
    let mut field = Array2::<i32>::zeros((3, 4));
    let (mut elements, mut rows) = (Vec::new(), Vec::new());
    let (upper, lower) = field.multi_slice_mut((s![..2, ..;-2], s![2.., ..]));
    for_each(upper, |x| elements.push(x));
    for_each_run(lower, |row| rows.push(row));
    for (number, x) in (1..).zip(elements) {
        *x = number;
    }
    rows[0].fill(-1);
    assert_eq!(field.into_raw_vec_and_offset().0, [0, 1, 0, 2, 0, 3, 0, 4, -1, -1, -1, -1]);
}

#[test]
fn a_panic_of_the_function_passes_through() {
    let mut field = Array1::from(vec![1, 2, 3]);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for_each(&mut field, |x| if *x == 2 { panic!("two") } else { *x = 0 });
    }));
    assert!(caught.is_err());
    assert_eq!(field.to_vec(), [0, 2, 3]);
}

#[test]
fn padded_tensors_are_visited_by_rows() {
    let spec = Spec::new(&[6, 5, 3], DType::F64).preset(Preset::find("gt:cpu_ifirst").unwrap()).alignment_size(64);
    let mut field = Tensor::full(&spec, 1.0).unwrap();
    assert_eq!(field.descriptor().strides(), [1, 8, 40]);
    let mut rows = Vec::new();
    for_each_run(field.array_view_mut::<f64, Ix3>().unwrap(), |row| rows.push(row.into_slice().unwrap().len()));
    // The last dimension continues the second one: all rows have the same distance.
    assert_eq!(rows, [6; 15]);
    assert_eq!(fold(field.array_view_mut::<f64, Ix3>().unwrap(), 0.0, |sum, x| sum + *x), 90.0);
}
