// A webhook receiver in one file without dependencies, for Go 1.19 or newer: WEBHOOK_SECRET=... go run receiver.go.
package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// The largest accepted difference between the timestamp of a request and the present time. The service signs each attempt when it sends
	// it, so a request with an older timestamp may be a copy that an attacker sends again.
	tolerance = 5 * time.Minute
	maxBytes  = 1_000_000
)

var (
	inbox  = setting("INBOX", "inbox")
	key    = keyOf(os.Getenv("WEBHOOK_SECRET"))
	idForm = regexp.MustCompile(`^\w+$`)

	apiKey = os.Getenv("API_KEY")
	apiURL = setting("API_URL", "http://127.0.0.1:3000")
	client = http.Client{Timeout: 30 * time.Second}
	calls  sync.Mutex
)

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func keyOf(secret string) []byte {
	if secret == "" {
		log.Fatal("WEBHOOK_SECRET is not set")
	}
	if !strings.HasPrefix(secret, "whsec_") {
		return []byte(secret)
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		log.Fatal("WEBHOOK_SECRET is not base64 after whsec_")
	}
	return decoded
}

// Returns the delivery's id, and true if the timestamp is recent and a signature with our secret matches id, timestamp and body.
func verified(headers http.Header, body []byte) (string, bool) {
	id, timestamp := headers.Get("webhook-id"), headers.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || !idForm.MatchString(id) {
		return "", false
	}
	if age := time.Since(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return "", false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, timestamp)
	mac.Write(body)
	expected := mac.Sum(nil)
	// For a day after a rotation of the secret, there are two signatures. One of them must match.
	for _, entry := range strings.Split(headers.Get("webhook-signature"), " ") {
		given, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(entry, "v1,"))
		if strings.HasPrefix(entry, "v1,") && err == nil && hmac.Equal(given, expected) {
			return id, true
		}
	}
	return "", false
}

// Stores a delivery durably. Returns false if it is already stored. The file name is the delivery id, so no second file can be created.
func keep(id string, body []byte) (bool, error) {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return false, err
	}
	draft := filepath.Join(inbox, "."+id+"."+hex.EncodeToString(random))
	file, err := os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false, err
	}
	defer os.Remove(draft)
	_, writeErr := file.Write(body)
	for _, err := range []error{writeErr, file.Sync(), file.Close()} {
		if err != nil {
			return false, err
		}
	}
	err = os.Link(draft, filepath.Join(inbox, id+".json"))
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// Calls the API: writes a note on a new prospect. A repeated request has the same Idempotency-Key, so it writes no second note. The file
// <id>.done is written at the end. If it is missing, the next start of this program calls the API again.
func callBack(id string) error {
	var delivery struct {
		Event string
		Test  bool
		Data  struct{ Prospect struct{ ID int64 } }
	}
	content, err := os.ReadFile(filepath.Join(inbox, id+".json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, &delivery); err != nil {
		return err
	}
	url := fmt.Sprintf("%s/api/prospects/%d/notes", apiURL, delivery.Data.Prospect.ID)
	for delivery.Event == "prospect.created" && !delivery.Test {
		request, err := http.NewRequest("POST", url, strings.NewReader(`{"body": "The CRM has this prospect."}`))
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+apiKey)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", id)
		seconds := 5
		if answer, err := client.Do(request); err == nil {
			answer.Body.Close()
			if answer.StatusCode < 300 {
				break
			}
			if retryAfter, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
				seconds = retryAfter
			} else if answer.StatusCode < 500 {
				return fmt.Errorf("%s: %s", id, answer.Status)
			}
		}
		time.Sleep(time.Duration(seconds) * time.Second)
	}
	return os.WriteFile(filepath.Join(inbox, id+".done"), nil, 0o600)
}

// Calls the API for one delivery after another, if the receiver has an API key.
func callBackInTurn(id string) {
	calls.Lock()
	defer calls.Unlock()
	if apiKey == "" {
		return
	}
	if err := callBack(id); err != nil {
		log.Print(err)
	}
}

// Stores a delivery and answers at once, because the service waits at most 10 seconds for the answer. The delivery is handled later.
func receive(response http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPost {
		response.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	// Keep the raw bytes, because JSON that is parsed and written again may have other bytes and then another signature.
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, maxBytes))
	if err != nil {
		response.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	id, ok := verified(request.Header, body)
	if !ok {
		response.WriteHeader(http.StatusUnauthorized)
		return
	}
	isNew, err := keep(id, body)
	if err != nil {
		// The status is not 2xx, so the service sends the delivery again later.
		log.Print(err)
		response.WriteHeader(http.StatusInternalServerError)
		return
	}
	if isNew {
		fmt.Println(id, request.Header.Get("X-Service-Event"))
		go callBackInTurn(id)
	}
	response.WriteHeader(http.StatusNoContent)
}

func main() {
	if err := os.MkdirAll(inbox, 0o700); err != nil {
		log.Fatal(err)
	}
	stored, err := filepath.Glob(filepath.Join(inbox, "*.json"))
	if err != nil {
		log.Fatal(err)
	}
	for _, file := range stored {
		id := strings.TrimSuffix(filepath.Base(file), ".json")
		if _, err := os.Stat(filepath.Join(inbox, id+".done")); err != nil {
			go callBackInTurn(id)
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(setting("HOST", "127.0.0.1"), setting("PORT", "8080")))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	server := &http.Server{Handler: http.HandlerFunc(receive), ReadTimeout: 15 * time.Second}
	log.Fatal(server.Serve(listener))
}
