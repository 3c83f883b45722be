//! Real servers on this machine's loopback, and what goes wrong between them and a client.

use std::{
    env, fs,
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    ops::Range,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// The user and password of servers that ask for one.
pub const USER: &str = "kernels";
/// Nothing may show it.
pub const PASSWORD: &str = "hunter2-never-shown";

/// A server that ends with this value.
#[allow(missing_debug_implementations, reason = "a running program")]
pub struct Server {
    child: Child,
    start: Box<dyn Fn() -> Command + Send + Sync>,
    /// Where it listens.
    pub port: u16,
    directory: TempDir,
}

impl Server {
    /// Redis; with a password if one is wanted.
    #[must_use]
    pub fn redis(password: Option<&str>) -> Self {
        let password = password.map(str::to_owned);
        Self::of(move |port, directory| {
            let mut command = Command::new(program("redis-server", "redis-server"));
            command.args([
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
                "--port",
                &port.to_string(),
            ]);
            command.arg("--dir").arg(directory);
            if let Some(password) = &password {
                command.args(["--requirepass", password]);
            }
            command
        })
    }

    /// Redis that speaks TLS alone.
    #[must_use]
    pub fn redis_with_tls(certificate: &Certificate) -> Self {
        let (server, key) = (certificate.server(), certificate.key());
        Self::of(move |port, directory| {
            let mut command = Command::new(program("redis-server", "redis-server"));
            command.args([
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--port",
                "0",
                "--tls-auth-clients",
                "no",
            ]);
            command.args(["--tls-port", &port.to_string()]);
            command
                .arg("--tls-cert-file")
                .arg(&server)
                .arg("--tls-key-file")
                .arg(&key);
            command
                .arg("--tls-ca-cert-file")
                .arg(&server)
                .arg("--dir")
                .arg(directory);
            command
        })
    }

    /// memcached.
    #[must_use]
    pub fn memcached() -> Self {
        Self::of(|port, _| {
            let mut command = Command::new(program("memcached", "memcached"));
            command.args(["-l", "127.0.0.1", "-U", "0", "-u", "nobody", "-p", &port.to_string()]);
            command
        })
    }

    /// nginx with WebDAV, for [`USER`] with [`PASSWORD`].
    #[must_use]
    pub fn webdav() -> Self {
        Self::nginx(String::new())
    }

    /// The same, by HTTPS alone.
    #[must_use]
    pub fn webdav_with_tls(certificate: &Certificate) -> Self {
        let (server, key) = (certificate.server(), certificate.key());
        Self::nginx(format!(
            "ssl_certificate {}; ssl_certificate_key {};",
            server.display(),
            key.display()
        ))
    }

    /// `tls`: what nginx's configuration says of it.
    fn nginx(tls: String) -> Self {
        Self::of(move |port, directory| {
            let ssl = if tls.is_empty() { "" } else { "ssl" };
            fs::create_dir_all(directory.join("files")).expect("made");
            fs::write(directory.join("users"), format!("{USER}:{{PLAIN}}{PASSWORD}\n")).expect("written");
            let there = directory.display();
            let text = format!(
                "daemon off; master_process off; pid {there}/pid; error_log {there}/error.log;
                load_module /usr/lib/nginx/modules/ngx_http_dav_ext_module.so;
                events {{ worker_connections 512; }}
                http {{
                  access_log off; client_max_body_size 0;
                  client_body_temp_path {there}/body; proxy_temp_path {there}/proxy;
                  fastcgi_temp_path {there}/fastcgi; uwsgi_temp_path {there}/uwsgi; scgi_temp_path {there}/scgi;
                  server {{
                    listen 127.0.0.1:{port} {ssl}; {tls} root {there}/files;
                    auth_basic cache; auth_basic_user_file {there}/users;
                    dav_methods PUT DELETE MKCOL COPY MOVE; dav_ext_methods PROPFIND OPTIONS;
                    create_full_put_path on; dav_access user:rw;
                  }}
                }}"
            );
            let file = directory.join("nginx.conf");
            fs::write(&file, text).expect("written");
            let mut command = Command::new(program("nginx", "nginx libnginx-mod-http-dav-ext"));
            command.arg("-c").arg(file).arg("-p").arg(directory);
            command
        })
    }

    /// An S3 server (moto), with the bucket `kernels`.
    #[must_use]
    pub fn s3() -> Self {
        let server = Self::of(|port, _| {
            let mut command = Command::new(moto());
            command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
            command
        });
        server.make_bucket();
        server
    }

    /// Makes the bucket of an S3 server that was started again. A server that is starting may reset connections that it has taken.
    pub fn make_bucket(&self) {
        let limit = Instant::now() + Duration::from_secs(30);
        let answer = loop {
            match self.ask_for_bucket() {
                Ok(answer) => break answer,
                Err(_) if Instant::now() < limit => thread::sleep(Duration::from_millis(50)),
                Err(error) => panic!("the server made no bucket: {error}"),
            }
        };
        // It is there already where an answer was lost.
        let is_there = ["HTTP/1.1 200", "HTTP/1.1 409"]
            .iter()
            .any(|start| answer.starts_with(start));
        assert!(is_there, "{answer}");
    }

    fn ask_for_bucket(&self) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        let request = "PUT /kernels HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\
            Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, \
            Signature=0\r\n\r\n";
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn of(command: impl Fn(u16, &Path) -> Command + Send + Sync + 'static) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let place = directory.path().to_owned();
        let start = Box::new(move || {
            let mut command = command(port, &place);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        });
        let child = start().spawn().expect("the server starts");
        let mut server = Self {
            child,
            start,
            port,
            directory,
        };
        server.wait();
        server
    }

    fn wait(&mut self) {
        for _ in 0..6000 {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            if let Some(status) = self.child.try_wait().expect("asked") {
                let log = fs::read_to_string(self.directory.path().join("error.log")).unwrap_or_default();
                panic!("the server ended: {status} {log}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("the server does not listen");
    }

    /// Ends it, as a crash would.
    pub fn stop(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    /// Starts it again, at the same place.
    pub fn restart(&mut self) {
        self.child = (self.start)().spawn().expect("the server starts");
        self.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An authority of certificates that nobody knows, and a certificate of it for 127.0.0.1.
#[derive(Debug)]
pub struct Certificate(TempDir);

impl Certificate {
    /// Makes both, with openssl.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it starts a program")]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        fs::write(folder.path().join("names"), "subjectAltName=IP:127.0.0.1\n").expect("written");
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        let steps = [
            format!("req -x509 {key} -keyout authority.key -out authority.pem -days 2 -subj /CN=tests"),
            format!("req {key} -keyout server.key -out server.csr -subj /CN=127.0.0.1"),
            "x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 -extfile names -out \
             server.pem"
                .to_owned(),
        ];
        for step in steps {
            let mut command = Command::new(program("openssl", "openssl"));
            command.args(step.split_whitespace()).current_dir(folder.path());
            let output = command.output().expect("openssl starts");
            assert!(
                output.status.success(),
                "{step}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Self(folder)
    }

    /// The authority's certificate: what clients are to trust.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.0.path().join("authority.pem")
    }

    fn server(&self) -> PathBuf {
        self.0.path().join("server.pem")
    }

    fn key(&self) -> PathBuf {
        self.0.path().join("server.key")
    }
}

/// A program of a Debian package.
fn program(name: &str, package: &str) -> PathBuf {
    let folders = ["/usr/bin", "/usr/sbin", "/usr/local/bin"];
    let found = folders
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.exists());
    found.unwrap_or_else(|| panic!("{name} is missing: `apt-get install {package}`, or `cargo xtask setup`"))
}

fn moto() -> PathBuf {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.toolkit/servers/bin/moto_server");
    let path = env::var_os("GPULOWER_MOTO").map_or(usual, PathBuf::from);
    assert!(
        path.exists(),
        "{} is missing: run `cargo xtask setup`, or name a moto_server (`pip install 'moto[server,s3]'`) in GPULOWER_MOTO",
        path.display()
    );
    path
}

/// A port that nobody listens on, and that no connection or listener of a test is given by chance: it lies below the ports that
/// systems choose themselves.
#[must_use]
pub fn free_port() -> u16 {
    const PORTS: Range<u16> = 15_000..30_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Processes begin at different places, with room for the servers of each.
    let begin = std::process::id().wrapping_mul(97) as u16;
    for _ in PORTS {
        let step = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + step % PORTS.len() as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port from {} to {} is free", PORTS.start, PORTS.end);
}

/// What a connection does to what a server sends.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing.
    None,
    /// Connections are taken, and nothing comes back.
    Hang,
    /// Each piece comes so much later.
    Slow(Duration),
    /// It ends after so many bytes.
    Truncate(usize),
    /// The byte at each multiple of this place is another one.
    Flip(usize),
    /// Connections end at once.
    Reset,
    /// Something else is answered.
    Answer(Vec<u8>),
}

/// A connection to a server that can be spoilt.
#[allow(missing_debug_implementations, reason = "threads")]
pub struct Proxy {
    /// Where it listens.
    pub port: u16,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    fault: Fault,
    open: Vec<TcpStream>,
}

impl Proxy {
    /// In front of a server on this machine.
    #[must_use]
    pub fn before(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Mutex::new(Shared {
            fault: Fault::None,
            open: Vec::new(),
        }));
        let own = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&own);
                thread::spawn(move || serve(client, server, &shared));
            }
        });
        Self { port, shared }
    }

    /// From now on, on new connections; those that there are end.
    pub fn spoil(&self, fault: Fault) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.fault = fault;
        for stream in shared.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn serve(mut client: TcpStream, server: u16, shared: &Mutex<Shared>) {
    let fault = {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.open.extend(client.try_clone());
        shared.fault.clone()
    };
    match fault {
        Fault::Reset => return,
        Fault::Hang => {
            let _ = std::io::copy(&mut client, &mut std::io::sink());
            return;
        }
        Fault::Answer(bytes) => {
            let mut request = [0; 1 << 16];
            while client.read(&mut request).is_ok_and(|read| read > 0) && client.write_all(&bytes).is_ok() {}
            return;
        }
        Fault::None | Fault::Slow(_) | Fault::Truncate(_) | Fault::Flip(_) => {}
    }
    let Ok(mut up) = TcpStream::connect(("127.0.0.1", server)) else {
        return;
    };
    let (Ok(mut from_client), Ok(mut to_server)) = (client.try_clone(), up.try_clone()) else {
        return;
    };
    let sending = thread::spawn(move || {
        let _ = std::io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    let (mut passed, mut buffer) = (0, [0; 1 << 14]);
    while let Ok(read) = up.read(&mut buffer) {
        let Some(mut piece) = buffer.get_mut(..read).filter(|piece| !piece.is_empty()) else {
            break;
        };
        match fault {
            Fault::Slow(time) => thread::sleep(time),
            Fault::Flip(place) => {
                for (index, byte) in piece.iter_mut().enumerate() {
                    *byte ^= u8::from((passed + index + 1) % place == 0);
                }
            }
            Fault::Truncate(most) if passed + read > most => piece = piece.split_at_mut(most - passed).0,
            _ => {}
        }
        passed += piece.len();
        if client.write_all(piece).is_err() || matches!(fault, Fault::Truncate(most) if passed >= most) {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = up.shutdown(Shutdown::Both);
    let _ = sending.join();
}
