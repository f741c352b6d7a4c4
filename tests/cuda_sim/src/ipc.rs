//! Memory between processes: a handle names a file of the process that exported it, which others map.

use crate::clocks::{Area, HOST, Moment, Touch};
use crate::codes::{Failure, Outcome};
use crate::driver::Driver;
use crate::memory::{Kind, pages};
use std::fs::{File, OpenOptions, read_link};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;

/// A handle, as `CUipcMemHandle`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemHandle(pub [u8; 64]);

impl Default for MemHandle {
    fn default() -> MemHandle {
        MemHandle([0; 64])
    }
}

const MAGIC: u64 = u64::from_le_bytes(*b"fake-ipc");

/// What a handle says: of which process it is, which file it is there, and where the memory is in it.
struct Content {
    process: u64,
    file: u64,
    number: u64,
    device: u64,
    offset: u64,
    size: u64,
}

impl Content {
    fn encode(&self) -> MemHandle {
        let words = [MAGIC, self.process, self.file, self.number, self.device, self.offset, self.size];
        let mut handle = MemHandle::default();
        for (bytes, word) in handle.0.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        handle
    }

    fn decode(handle: MemHandle) -> Option<Content> {
        let mut words = [0u64; 8];
        for (word, bytes) in words.iter_mut().zip(handle.0.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let [magic, process, file, number, device, offset, size, _] = words;
        (magic == MAGIC && size > 0).then_some(Content { process, file, number, device, offset, size })
    }

    fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", self.process, self.file).into()
    }

    fn link(&self) -> PathBuf {
        format!("/memfd:{} (deleted)", name(self.process, self.number)).into()
    }
}

fn name(process: u64, number: u64) -> String {
    format!("fakecuda-{process}-{number}")
}

/// Memory that other processes may open.
pub struct Exported {
    /// Other processes find it by its number in this one.
    _file: File,
    handle: MemHandle,
}

/// Memory of another process.
pub struct Opened {
    handle: MemHandle,
    /// How often it was opened and not closed.
    count: u64,
}

impl Driver {
    /// Returns a handle for memory, which is not of a pool: CUDA refuses that, and memory that another process has exported.
    pub fn export_memory(&mut self, base: u64) -> Outcome<MemHandle> {
        self.usable_device()?;
        self.note_unsafe()?;
        if let Some(exported) = self.exported.get(&base) {
            return Ok(exported.handle);
        }
        let found = self.memory.known(base).filter(|found| found.base == base && found.kind == Kind::Device);
        let found = found.filter(|found| found.pool.is_none()).ok_or(Failure::INVALID_VALUE)?;
        let (size, number, device) = (found.size, found.number, found.device);
        self.note_foreign(device, "cuIpcGetMemHandle");
        let process = u64::from(std::process::id());
        let name = std::ffi::CString::new(name(process, number)).map_err(|_| Failure::UNKNOWN)?;
        // SAFETY: the name ends with zero, and the file belongs to nobody else.
        let file = unsafe {
            let file = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
            if file < 0 {
                return Err(Failure::OUT_OF_MEMORY);
            }
            File::from_raw_fd(file)
        };
        if !self.memory.move_to_file(base, size, &file) {
            return Err(Failure::OUT_OF_MEMORY);
        }
        let (file_number, offset) = (file.as_raw_fd() as u64, base - pages(base, size).0);
        let content = Content { process, file: file_number, number, device: device as u64, offset, size };
        let handle = content.encode();
        self.exported.insert(base, Exported { _file: file, handle });
        Ok(handle)
    }

    /// Maps the memory of another process; the second time only counts.
    pub fn open_memory(&mut self, handle: MemHandle) -> Outcome<u64> {
        self.usable_device()?;
        self.note_unsafe()?;
        if let Some((base, opened)) = self.opened.iter_mut().find(|(_, opened)| opened.handle == handle) {
            opened.count += 1;
            return Ok(*base);
        }
        let content = Content::decode(handle).ok_or(Failure::INVALID_VALUE)?;
        if content.process == u64::from(std::process::id()) {
            self.counters.opened_at_home += 1;
            self.report("cuIpcOpenMemHandle: the memory is of this process".to_owned());
            return Err(Failure::INVALID_CONTEXT);
        }
        let device = self.device(content.device as i32)?;
        self.note_foreign(device, "cuIpcOpenMemHandle");
        if read_link(content.path()).ok() != Some(content.link()) {
            return Err(Failure::MAP_FAILED);
        }
        let file = OpenOptions::new().read(true).write(true).open(content.path()).map_err(|_| Failure::MAP_FAILED)?;
        let base = self.memory.open_file(device, content.offset, content.size, &file)?;
        self.opened.insert(base, Opened { handle, count: 1 });
        Ok(base)
    }

    /// Unmaps the memory of another process when it was closed as often as opened. CUDA does not say that this waits for work.
    pub fn close_memory(&mut self, base: u64) -> Outcome {
        self.usable_device()?;
        self.note_unsafe()?;
        let Some(opened) = self.opened.get_mut(&base) else {
            self.counters.bad_closes += 1;
            self.report(format!("cuIpcCloseMemHandle({base:#x}): not opened, or closed before"));
            return Err(Failure::INVALID_VALUE);
        };
        opened.count -= 1;
        if opened.count > 0 {
            return Ok(());
        }
        if let Some(found) = self.memory.find(base) {
            let (size, device) = (found.size, found.device);
            self.note_foreign(device, "cuIpcCloseMemHandle");
            let moment = Moment { actor: HOST, number: self.host_accesses + 1, clock: self.host.clone() };
            self.touch(&moment, &Touch::write(Area::block(base, size)), "cuIpcCloseMemHandle")?;
        }
        self.release(base);
        Ok(())
    }
}
