//! Specs and descriptors in the formats of serde.

use dlfield::{Alignment, DType, Device, Dims, Layout, LayoutRule, Padding, Preset, Spec, Tensor};

fn through_json(spec: &Spec) -> Spec {
    serde_json::from_str(&serde_json::to_string(spec).unwrap()).unwrap()
}

#[test]
fn a_spec_comes_back_as_it_was() {
    let plain = Spec::new(&[4, 5, 6], DType::F32);
    let presets = ["gt:cpu_ifirst", "gt:gpu", "gtmc"].map(|name| Preset::find(name).unwrap());
    let own = Preset::new("own", Device::CPU, Alignment::Base(128), LayoutRule::F).unwrap();
    let specs = [
        plain.clone(),
        Spec::new(&[], DType::BOOL),
        plain.clone().layout(Layout::f_order(3)).alignment_size(64).aligned_index(&[1, 0, 2]).padding(Padding::Row),
        plain.clone().dims(Dims::parse(["K", "x", "0"]).unwrap()).origin(&[2, 1, 0]).halo(&[(1, 0), (0, 2), (0, 0)]),
        plain.clone().with_device(Device::cuda(3)),
        Tensor::zeros(&plain.clone().halo(&[(1, 1); 3])).unwrap().spec(),
    ];
    let with_presets = presets.into_iter().chain([own]).map(|preset| plain.clone().preset(preset));
    for spec in specs.into_iter().chain(with_presets) {
        assert_eq!(format!("{:?}", through_json(&spec)), format!("{spec:?}"));
    }
}

#[test]
fn a_spec_that_is_invalid_is_rejected() {
    let error = |rest: &str| {
        let text = format!(r#"{{"shape": [3, 4], "dtype": "float64", {rest}}}"#);
        serde_json::from_str::<Spec>(&text).unwrap_err().to_string()
    };
    for (rest, wanted) in [
        (r#""strides": [1]"#, "unknown field `strides`"),
        (r#""layout": [0, 0]"#, "[0, 0]"),
        (r#""padding": "rows""#, "padding"),
        (r#""dims": ["I", "I"]"#, "dims"),
        (r#""device": "moon""#, "moon"),
        (r#""preset": {"device": "cpu", "alignment": {"base": 0}, "layout": "C"}"#, "alignment"),
        (r#""preset": {"device": "cpu", "alignment": {"base": 8}, "layout": {"grid": [0, 0, 9]}}"#, "[0, 0, 9]"),
    ] {
        assert!(error(rest).contains(wanted), "{rest}: {}", error(rest));
    }
    let unknown = serde_json::from_str::<Spec>(r#"{"shape": [3], "dtype": "object"}"#).unwrap_err().to_string();
    assert!(unknown.starts_with("dtype: \"object\"; allowed are bool, int8, "), "{unknown}");
    // What only the allocation can check.
    let late: Spec = serde_json::from_str(r#"{"shape": [3, -4], "dtype": "int8", "halo": [[1, 1]]}"#).unwrap();
    assert!(Tensor::zeros(&late).is_err());
    let short: Spec = serde_json::from_str(r#"{"shape": [3, 4], "dtype": "int8", "layout": [0]}"#).unwrap();
    assert!(Tensor::zeros(&short).is_err());
}

#[test]
fn types_and_devices_are_their_names() {
    for dtype in DType::all() {
        assert_eq!(serde_json::to_string(&dtype).unwrap(), format!("\"{dtype}\""));
        assert_eq!(serde_json::from_str::<DType>(&format!("\"{dtype}\"")).unwrap(), dtype);
    }
    for device in [Device::CPU, Device::cuda(2), Device::CUDA_HOST] {
        assert_eq!(serde_json::from_str::<Device>(&serde_json::to_string(&device).unwrap()).unwrap(), device);
    }
}
