package app

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/token"
)

// tokenCommand makes the commands for tokens.
func (p *program) tokenCommand() *cobra.Command {
	parent := parentCommand("token", "Make keys and tokens, and explain tokens", "keygen", "gen", "check")
	parent.Long = "Makes keys and tokens, and explains tokens. With --auth token a server admits only clients with\n" +
		"a token that your login service has signed: see docs/SECURITY.md.\n\n" +
		"To try it on this machine:\n\n" +
		"  server token keygen login-1                    # login-1.key for the login service, login-1.pub for the server\n" +
		"  server --auth token --auth-keys login-1.pub --auth-audience arena-1\n" +
		"  server token gen --key login-1.key --audience arena-1 --subject anna"
	parent.AddCommand(p.keygenCommand(), p.genCommand(), p.checkCommand())
	return parent
}

// oneWord demands exactly one argument.
func oneWord(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s takes one argument, %s: see %s --help", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

func (p *program) keygenCommand() *cobra.Command {
	return &cobra.Command{
		Use: "keygen NAME", Short: "Make a pair of keys: NAME.key signs tokens, NAME.pub is for servers",
		Long: "Makes a pair of Ed25519 keys and overwrites nothing.\n\n" +
			"NAME.key is private: it belongs to the login service alone, and its owner can sign for any player.\n" +
			"NAME.pub is for the servers' --auth-keys. Its file name without the ending is the kid of tokens.",
		Args: oneWord("the name of the key"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := token.GenerateKey(args[0]); err != nil {
				return fmt.Errorf("keygen: %w: choose another name, in a writable folder", err)
			}
			_, err := fmt.Fprintf(p.stdout, "%s.key  private: for the login service alone\n%s.pub  public: for the servers, as --auth-keys\n", args[0], args[0])
			return err
		},
	}
}

// genFlags are the flags of token gen.
type genFlags struct {
	key, audience, subject, room string
	role                         int
	lifetime                     time.Duration
	claims                       []string
}

func (p *program) genCommand() *cobra.Command {
	var f genFlags
	cmd := &cobra.Command{
		Use: "gen", Short: "Print a token, as a login service makes it",
		Long: "Prints a token that is for one join and valid from now, as a login service makes it.",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return p.gen(&f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.key, "key", "", "`FILE` with the private key that token keygen made")
	flags.StringVar(&f.audience, "audience", "", "the server's --auth-audience")
	flags.StringVar(&f.subject, "subject", "", "the player: claim sub")
	flags.StringVar(&f.room, "room", "", "the room of the token (default: all rooms)")
	flags.IntVar(&f.role, "role", 0, "the player's role, a number of the game")
	flags.DurationVar(&f.lifetime, "for", time.Minute, "how long it is valid, 1s to 1h")
	flags.StringArrayVar(&f.claims, "claim", nil, "a further claim for the game, `NAME=TEXT`; may be repeated")
	return cmd
}

func (p *program) gen(f *genFlags) error {
	switch {
	case f.key == "":
		return errors.New("--key is missing: give the file with the private key (token keygen makes one)")
	case f.audience == "":
		return errors.New("--audience is missing: give the --auth-audience of the server that the token is for")
	case f.subject == "":
		return errors.New("--subject is missing: give the name of the player, such as anna")
	case f.lifetime < time.Second || f.lifetime > token.MaxLifetime:
		return netloop.ConfigError("--for", f.lifetime, "use 1s to %v", token.MaxLifetime)
	}
	claims := map[string]any{}
	for _, c := range f.claims {
		name, text, ok := strings.Cut(c, "=")
		if !ok || name == "" {
			return netloop.ConfigError("--claim", strconv.Quote(c), "use NAME=TEXT")
		}
		claims[name] = text
	}
	signer, err := token.LoadSigner(f.key)
	if err != nil {
		return netloop.ConfigError("--key", strconv.Quote(f.key), "name the file that token keygen wrote: %s", err)
	}
	text, err := signer.Sign(token.Grant{
		Subject: f.subject, Audience: f.audience, Room: f.room, Role: f.role, From: time.Now(), For: f.lifetime, Claims: claims,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, text)
	return err
}

// checkFlags are the flags of token check.
type checkFlags struct{ keys, audience, room string }

func (p *program) checkCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use: "check TOKEN", Short: "Check a token claim by claim: exit status 0 if it is valid",
		Long: "Checks a token claim by claim, as a server does, by the clock of\n" +
			"this machine; it cannot know whether the token was used before.\n\n" +
			"Exit status: 0 a server with these keys and this audience accepts it; 1 it does not; 2 the command\n" +
			"cannot be used like this.",
		Args: oneWord("the token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.check(&f, args[0], cmd.Flags().Changed("room"))
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.keys, "keys", "", "the server's --auth-keys: a `FILE` or a folder")
	flags.StringVar(&f.audience, "audience", "", "the server's --auth-audience")
	flags.StringVar(&f.room, "room", "", "the room to join (default: the room of the token)")
	return cmd
}

func (p *program) check(f *checkFlags, text string, oneRoom bool) error {
	switch {
	case f.keys == "":
		return errors.New("--keys is missing: give the server's --auth-keys, the file or folder with the public keys")
	case f.audience == "":
		return errors.New("--audience is missing: give the server's --auth-audience")
	}
	keys, err := token.LoadKeys(f.keys)
	if err != nil {
		return netloop.ConfigError("--keys", strconv.Quote(f.keys), "name a file with a public key in PEM, or a folder of such files: %s", err)
	}
	found := token.Explain(text, token.Want{Keys: keys, Audience: f.audience, Room: f.room, AnyRoom: !oneRoom, Now: time.Now()})
	wrong := 0
	for _, finding := range found {
		mark := "ok"
		if finding.Wrong != token.Fine {
			mark, wrong = "WRONG", wrong+1
		}
		line := fmt.Sprintf("%-10s%-7s%s", finding.What, mark, finding.Text)
		if finding.Detail != "" {
			line += ": " + finding.Detail
		}
		if _, err := fmt.Fprintln(p.stdout, line); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return &failure{fmt.Errorf("token is refused: %s", strings.Join(reasons(found), "; "))}
	}
	_, err = fmt.Fprintln(p.stdout, "\ntoken is accepted, once")
	return err
}

// reasons returns the texts with which a server would refuse a token.
func reasons(found []token.Finding) (all []string) {
	for _, f := range found {
		if f.Wrong != token.Fine {
			all = append(all, f.Text)
		}
	}
	return all
}
