// Opens an SRTP record with libsrtp2: open KEY-AND-SALT RECORD, both in hexadecimal. It prints the
// opened packet.
#include <srtp2/srtp.h>
#include <stdio.h>
#include <string.h>

static int bytes(const char *hex, unsigned char *out) {
	int n = 0;
	for (; sscanf(hex, "%2hhx", &out[n]) == 1; hex += 2)
		n++;
	return n;
}

int main(int argc, char **argv) {
	static unsigned char key[64], packet[2048];
	srtp_policy_t policy;
	srtp_t session;
	if (argc != 3 || srtp_init() != srtp_err_status_ok)
		return 2;
	memset(&policy, 0, sizeof policy);
	if (bytes(argv[1], key) == 16 + 12) {
		srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp);
		srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp);
	} else {
		srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp);
		srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtcp);
	}
	policy.ssrc.type = ssrc_any_inbound;
	policy.key = key;
	if (srtp_create(&session, &policy) != srtp_err_status_ok)
		return 3;
	int n = bytes(argv[2], packet);
	srtp_err_status_t status = srtp_unprotect(session, packet, &n);
	if (status != srtp_err_status_ok) {
		fprintf(stderr, "srtp_unprotect: %d\n", status);
		return 4;
	}
	for (int i = 0; i < n; i++)
		printf("%02x", packet[i]);
	return 0;
}
