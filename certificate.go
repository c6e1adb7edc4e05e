package netloop

import (
	"crypto/tls"
	"fmt"

	"github.com/netloop/netloop/internal/certificate"
	"github.com/netloop/netloop/internal/metrics"
)

// openCertificate loads the certificate that clients see, and returns the TLS configuration that
// uses it at every handshake.
func (s *Server) openCertificate() (*tls.Config, error) {
	conf := s.cfg.TLS.Clone()
	if conf == nil {
		conf = new(tls.Config)
	}
	k, err := s.keepCertificate(conf)
	if err != nil {
		return nil, err
	}
	if k != nil {
		s.certificate.Store(k)
		conf.Certificates, conf.GetCertificate = nil, k.Get
	}
	return conf, nil
}

// keepCertificate selects the source of the certificate. It returns nil if the program's own
// function selects one at each handshake.
func (s *Server) keepCertificate(conf *tls.Config) (k *certificate.Keeper, err error) {
	switch {
	case s.cfg.CertFile != "":
		if k, err = certificate.Files(s.cfg.CertFile, s.cfg.KeyFile, s.log); err != nil {
			return nil, fmt.Errorf("netloop: CertFile: %w", err)
		}
		return k, nil
	case len(conf.Certificates) > 0:
		return certificate.Given(conf.Certificates[0], s.log), nil
	case conf.GetCertificate != nil || conf.GetConfigForClient != nil:
		return nil, nil
	}
	if k, err = certificate.Development(s.log); err != nil {
		return nil, fmt.Errorf("netloop: %w", err)
	}
	return k, nil
}

// closeCertificate stops the renewal of the certificate.
func (s *Server) closeCertificate() {
	if k := s.certificate.Load(); k != nil {
		k.Close()
	}
}

// CertHash returns the SHA-256 hash of the current certificate, for clients that pin it. It is zero
// before Listen, and if [Config] TLS has a function that selects a certificate at each handshake.
// Any goroutine may call it.
func (s *Server) CertHash() [32]byte {
	k := s.certificate.Load()
	if k == nil {
		return [32]byte{}
	}
	return k.Hash()
}

func (m measured) CertificateLeft(f *metrics.Family) {
	if k := m.s.certificate.Load(); k != nil {
		if left, known := k.Left(); known {
			f.SetFloat(left.Seconds(), k.Kind())
		}
	}
}

func (m measured) CertificateReloads(f *metrics.Family) {
	if k := m.s.certificate.Load(); k != nil {
		loaded, failed := k.Counts()
		f.Set(loaded, "loaded")
		f.Set(failed, "failed")
	}
}
