// SPDX-License-Identifier: Apache-2.0
//! The samples of docs/guide/engines.md in Rust, compiled and run where rustc is found: plumb.h by hand, and a guard that ends what it began.
// [rffi]
use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::os::raw::{c_char, c_int, c_void};

#[repr(C)]
pub struct Profiler {
    _private: [u8; 0],
}
#[repr(C)]
struct Step {
    struct_size: u32,
    phase: i32,
    prefill_tokens: u64,
    decode_tokens: u64,
    sequences: u64,
    kv_length: u64,
}
#[repr(C)]
struct Work {
    struct_size: u32,
    reserved: u32,
    bytes: f64,
    flops: f64,
    elements: f64,
    bytes_per_kv: f64,
}
#[link(name = "plumb")]
extern "C" {
    fn plumb_last_error() -> *const c_char;
    fn plumb_open(spec: *const c_char, profiler: *mut *mut Profiler) -> c_int;
    fn plumb_close(profiler: *mut Profiler) -> c_int;
    fn plumb_intern(profiler: *mut Profiler, text: *const c_char, category: c_int, name: *mut u16) -> c_int;
    fn plumb_push_step(profiler: *mut Profiler, queue: *const c_void, step: *const Step) -> c_int;
    fn plumb_push_layer(profiler: *mut Profiler, index: u32) -> c_int;
    fn plumb_push_scope(profiler: *mut Profiler, queue: *const c_void, name: u16, work: *const Work) -> c_int;
    fn plumb_pop_scope(profiler: *mut Profiler) -> c_int;
}
// [/rffi]

// [rguard]
pub struct Plumb(*mut Profiler);
unsafe impl Send for Plumb {}
unsafe impl Sync for Plumb {} // every function from any thread

/// Ends what it stands for, in the order in which Rust drops: the innermost first. It stays on its thread. None: the push
/// was refused, and there is nothing to end.
#[must_use = "a scope lasts as long as its guard: let _brick = …"]
pub struct Scope<'a>(Option<&'a Plumb>, PhantomData<*const ()>);

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        if let Some(plumb) = self.0 {
            unsafe { plumb_pop_scope(plumb.0) };
        }
    }
}
impl Drop for Plumb {
    fn drop(&mut self) {
        unsafe { plumb_close(self.0) };
    }
}

impl Plumb {
    /// From the environment variable PLUMB, as everywhere.
    pub fn from_env() -> Result<Plumb, String> {
        let mut profiler = std::ptr::null_mut();
        match unsafe { plumb_open(std::ptr::null(), &mut profiler) } {
            0 => Ok(Plumb(profiler)),
            _ => Err(unsafe { CStr::from_ptr(plumb_last_error()) }.to_string_lossy().into_owned()),
        }
    }
    /// Once a name, not once a call.
    pub fn name(&self, text: &str) -> u16 {
        let mut name = 0;
        if let Ok(text) = CString::new(text) {
            unsafe { plumb_intern(self.0, text.as_ptr(), 0, &mut name) };
        }
        name
    }
    fn begun(&self, code: c_int) -> Scope<'_> {
        Scope((code == 0).then_some(self), PhantomData)
    }
    pub fn decode_step(&self, tokens: u64, kv_length: u64) -> Scope<'_> {
        let size = std::mem::size_of::<Step>() as u32;
        let step = Step { struct_size: size, phase: 2, prefill_tokens: 0, decode_tokens: tokens, sequences: tokens, kv_length };
        self.begun(unsafe { plumb_push_step(self.0, std::ptr::null(), &step) })
    }
    pub fn layer(&self, index: u32) -> Scope<'_> {
        self.begun(unsafe { plumb_push_layer(self.0, index) })
    }
    pub fn brick(&self, name: u16, bytes: f64, flops: f64) -> Scope<'_> {
        let size = std::mem::size_of::<Work>() as u32;
        let work = Work { struct_size: size, reserved: 0, bytes, flops, elements: 0.0, bytes_per_kv: 0.0 };
        self.begun(unsafe { plumb_push_scope(self.0, std::ptr::null(), name, &work) })
    }
}
// [/rguard]

const WIDTH: usize = 256;

fn multiply(weights: &[f32], state: &mut Vec<f32>) {
    *state = weights.chunks(WIDTH).map(|row| row.iter().zip(state.iter()).map(|(a, b)| a * b).sum()).collect();
}

fn main() -> Result<(), String> {
    let plumb = Plumb::from_env()?;
    let weights = vec![0.001f32; WIDTH * WIDTH];
    let mut state = vec![1.0f32; WIDTH];
    // [rloop]
    let up = plumb.name("up_projection");
    for position in 0..32 {
        let _step = plumb.decode_step(1, position + 1);
        for index in 0..4 {
            let _layer = plumb.layer(index);
            let _brick = plumb.brick(up, 4.0 * (WIDTH * WIDTH) as f64, 2.0 * (WIDTH * WIDTH) as f64);
            multiply(&weights, &mut state);
        }
    }
    // [/rloop]
    println!("{:?}", &state[..2]);
    Ok(())
}
